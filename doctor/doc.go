// Package doctor examines a node from outside and says what is wrong and what to do
// about it: configuration, ownership, the database, the disk, the clock, and each
// destination. It promises to change nothing, to disturb no running node, to print no
// secret, and to end: it gives up on whatever does not answer after a time. The one
// thing it writes is a small file in the data folder. That file has lost its name by
// the time it is written to, or is removed.
//
// Finding facts (Findings) and judging them (Judge) are separate, so that every
// judgement can be tested without a broken machine.
package doctor
