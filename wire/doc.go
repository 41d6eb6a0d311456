// Package wire turns messages into bytes and back: the envelope that every
// transport carries (OI-08), its signature (OI-09), the frames of a batch and
// the reply (OI-20). It does no I/O and starts no goroutine.
//
// It promises:
//   - Payload bytes are inserted and returned unchanged. The bytes that are signed
//     are the bytes that are sent and received. Both sides cut off only JSON
//     whitespace around the payload, before hashing.
//   - Decode refuses whatever two programs could read differently: duplicate
//     names, malformed ids, unknown kinds, and fields beyond their limits.
//   - A v2 signature covers every byte that this module interprets.
//
// It does not promise secrecy, nor that a reply is genuine; TLS does.
//
//	Message ──Encode(Seal)──► {"messageId":…,"payload":…,"headers":{…,"rf-hmac":…}}
//	                               │  alone, or framed: 123\n{…}\n
//	Message ◄─Verify(Check)─ Envelope ◄─Decode─┘
//	   │
//	Receipt, error ──ReplyTo──► Reply ──AppendTo──► {"acknowledged":…} ──DecodeReply──► Reply ──Result──► Receipt, error
//
// docs/guide/wire-protocol.md describes the protocol for implementers in other languages.
// docs/adr/0002-wire-envelope.md gives the reasons.
package wire
