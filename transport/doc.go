// Package transport carries messages between nodes over HTTP. Its client is a
// holdfast.BatchDeliverer; its server calls a holdfast.Receiver (OI-11). Package wire defines
// envelopes, signatures and replies.
//
// It promises:
//   - A nil error of Deliver means that the receiver has said, in a reply of our
//     protocol, that the message and its effect are durable. Nothing else counts
//     as an ack (OI-20).
//   - Every other outcome is classified once, here, by type, status and code,
//     never by text. Unreachable means that no byte of the request can have been
//     sent. An attempt that fails later may have delivered the message, and its
//     failure says so.
//   - A message that no known source has signed reaches no Receiver (OI-09).
//   - A panic, a slow message or a refused message affects only its own row of a
//     batch.
//
// It does not promise secrecy, nor that a reply is genuine: use TLS. Retrying is the dispatcher's
// task. The package repeats only a request whose reused connection the peer had just closed; that
// is safe because the receiver deduplicates.
//
//	dispatcher ─► Client ──POST /_rf/receive──► Server ─► Receiver
//	                │  {…} or a batch, Rf-Budget-Ms  │
//	                ◄──── reply, Rf-Batch: max=N ────┘
//
// docs/guide/wire-protocol.md has the status table.
package transport
