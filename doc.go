// Package holdfast moves messages between programs that cannot rely on the
// network: an outbox that takes a message durably and delivers it when it
// can, and an inbox that gives each message one effect however often it
// arrives.
//
// What it promises:
//
//   - A call that accepts a message returns after the message is on disk.
//   - Nothing that was accepted vanishes: every message ends delivered, or
//     stands where people see it as parked, expired or discarded.
//   - Delivery is at least once, every attempt carries the same id, and an
//     inbox runs its handler once per (source, id) for as long as it
//     remembers ids.
//   - State changes name the state they start from, so no background pass
//     overwrites a person's decision.
//   - A destination that is down costs the others nothing.
//
// What it does not promise: order between messages without a common ordering
// key, exactly-once effects in systems that do not deduplicate, and survival
// of a disk that dies.
//
// The parts: a store (package sqlite) keeps messages; a Dispatcher hands them
// to a Deliverer per destination, in lanes; an Inbox or Endpoints is the
// Receiver on the other side; package wire says what bytes go between, and
// package transport sends them. Two verbs hold it together: Deliver is the way
// out, Receive is the way in.
package holdfast
