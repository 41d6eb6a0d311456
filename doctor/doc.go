// Package doctor looks at a node from outside and says what is wrong and what
// to do about it: configuration, ownership, the database, the disk, the clock,
// and each destination. It promises to change nothing, to disturb no node that
// runs, to print no secret, and to end: whatever does not answer is given up
// after a time. The one thing it writes is a small file in the data folder,
// which has no name any more by the time it is written to, or is removed.
//
// What was found (Findings) and what is thought of it (Judge) are apart, so
// that every judgement is tested without a broken machine.
package doctor
