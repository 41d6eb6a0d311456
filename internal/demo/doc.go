// Package demo shows what Holdfast promises, with real processes: a sender and
// a receiver, messages between them, SIGKILL for each, and a network that loses
// acks. It knows the nodes only from outside, by their command line and over
// HTTP, and imports nothing of theirs: what it counts, it has seen itself.
//
//	producer ──POST /v1/messages──► sender ──► network ──► receiver ──► program
//	   │ accepted                     ▲           │ acks,     ▲            │ calls
//	   │                           SIGKILL        │ loses   SIGKILL        │
//	   └───────────────► ledger ◄─────────────────┴────────────────────────┘
//
// It promises that Run's counts are those of the ledger, that Run fails if an
// accepted message had no effect or two, and that it leaves no process behind,
// however it ends: a node stops when its standard input does, which a dead
// demo holds open no more. A demo that is killed, or ended by a second signal,
// leaves its temporary folder.
package demo
