// Package demo shows what Holdfast promises, with real processes. It runs two sites and
// their central, and programs that hand in orders, notifications, calls and writes. It
// kills nodes with SIGKILL, and puts a network between them that loses acks. Its mail
// server, target and database are away at times, refuse, or do the work without saying
// so. It knows the nodes only from outside, by their command line and over HTTP, and
// imports nothing of theirs: it counts only what it has seen itself.
//
//	producers ──► plant-1 ──► network, which ──► central ──► program   (orders)
//	    │         plant-2     loses acks            └──────► mail server
//	    │            ├──────► target                         (notifications)
//	    │            └──────► database
//	    └─ accepted ─► ledger ◄── effects, of all four
//
// A thing counts as refused if its receiver has refused it for good and a node says why
// it has set the thing aside: parked, until a person decides, or ended, if its producer
// was told. A thing that a node sets aside for another reason counts as lost.
//
// Promised: Run's counts are those of the ledger. Run fails if an accepted thing had no
// effect and was not refused, or took effect twice. The demo leaves no process behind,
// however it ends: a node stops at the end of its standard input, and a dead demo no
// longer holds that open. A demo that is killed, or ended by a second signal, leaves its
// temporary folder.
package demo
