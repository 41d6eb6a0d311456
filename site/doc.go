// Package site is for a program that is a site. The program calls foreign systems, writes to
// foreign databases and notifies people through the buffer of the site. Each call is on disk before
// it is tried. If the other side answers at once, so does the call. If it cannot act now, the call
// is buffered and tried again, even after the program was restarted or killed (SF-01, SF-36).
//
// It does not promise that a call reaches its target only once: if an answer was lost, the call is
// made again. Each attempt has the same message id, so that a target can tell (SF-35). The answer
// of a target goes to the call that waits for it, and is not kept.
//
// A Site runs the dispatcher and the sweeper of its store. A node of any role also uses a Site. A
// program that uses a node in another process calls the operator API instead, which offers the
// same.
package site
