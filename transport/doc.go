// Package transport carries messages from node to node over HTTP: the client
// is a holdfast.BatchDeliverer, the server calls a holdfast.Receiver (OI-11).
// Envelopes, signatures and replies are package wire's.
//
// It promises:
//   - A nil error of Deliver means that the receiver has said, in a reply of
//     ours, that the message and its effect are durable. Nothing else counts
//     as an ack (OI-20).
//   - Every other end is classified once, here, by type, status and code,
//     never by text. Unreachable is said only while no byte of the request
//     can have left; whatever ends later may have been delivered, and says so.
//   - What is not signed by a known source reaches no Receiver (OI-09).
//   - A panic, a slow row or a refused row of a batch costs that row, not the
//     others.
//
// It does not promise that a reply is genuine, nor secrecy: use TLS. Retrying
// is the dispatcher's business; the one thing repeated here is a request whose
// reused connection the peer had just closed, which is safe because the
// receiver deduplicates.
//
//	dispatcher ─► Client ──POST /_rf/receive──► Server ─► Receiver
//	                │  {…} or a batch, Rf-Budget-Ms  │
//	                ◄──── reply, Rf-Batch: max=N ────┘
//
// docs/guide/wire-protocol.md has the status table.
package transport
