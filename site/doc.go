// Package site is what a program that is a site calls: it calls foreign systems
// and writes foreign databases through the buffer of the site, and notifies
// people. Each call is on disk before it is tried. What the other side says at
// once is answered at once; what it cannot take now is buffered and tried
// again, also after the program was restarted or killed (SF-01, SF-36).
//
// What it does not promise: a call may reach its target twice, when the answer
// was lost. The message id is the same in each attempt, so that a target can
// tell (SF-35). The answer of a target goes to the call that waited and is not
// kept.
//
// A Site runs the dispatcher and the sweeper of its store; a node of any role is
// made of one, too. A program that talks to a node of its own, in another process,
// uses the operator API instead, which takes the same.
package site
