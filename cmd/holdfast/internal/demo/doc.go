// Package demo shows what Holdfast promises, with real processes: two sites and
// their central, programs that hand in orders, notifications, calls and writes,
// SIGKILL for nodes, a network that loses acks, and a mail server, a target and
// a database that are away, refuse, or do the work and do not say so. It knows
// the nodes only from outside, by their command line and over HTTP, and imports
// nothing of theirs: what it counts, it has seen itself.
//
//	producers ──► plant-1 ──► network, which ──► central ──► program   (orders)
//	    │         plant-2     loses acks            └──────► mail server
//	    │            ├──────► target                         (notifications)
//	    │            └──────► database
//	    └─ accepted ─► ledger ◄── effects, of all four
//
// A thing is refused if whoever was to do it has refused it for good, and a node
// says why it has set it aside: parked, until a person decides, or ended, where
// its producer was told. One that a node sets aside of its own accord counts as
// lost.
//
// It promises that Run's counts are those of the ledger, that Run fails if
// something that was accepted had no effect and was not refused, or took effect
// twice, and that it leaves no process behind, however it ends: a node stops
// when its standard input does, which a dead demo holds open no more. A demo
// that is killed, or ended by a second signal, leaves its temporary folder.
package demo
