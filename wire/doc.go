// Package wire turns messages into bytes and back: the envelope that every
// transport carries (OI-08), its signature (OI-09), the frames of a batch and
// the reply (OI-20). It does no I/O and starts no goroutine.
//
// It promises:
//   - Payload bytes are spliced in and handed out as they are. What is signed
//     is what is sent is what the receiver gets. Only JSON whitespace around
//     the payload is cut off, before hashing, by both sides.
//   - Decode accepts nothing twice: duplicate names, doubtful ids, unknown
//     kinds and fields beyond their limits are refused, so that two programs
//     cannot read two different messages out of the same bytes.
//   - A v2 signature covers every byte that anything here interprets.
//
// It does not promise secrecy, nor that a reply is genuine: that is TLS's part.
//
//	Message ──Encode(Seal)──► {"messageId":…,"payload":…,"headers":{…,"rf-hmac":…}}
//	                               │  alone, or framed: 123\n{…}\n
//	Message ◄─Verify(Check)─ Envelope ◄─Decode─┘
//	   │
//	Receipt, error ──ReplyTo──► Reply ──AppendTo──► {"acknowledged":…} ──DecodeReply──► Reply ──Result──► Receipt, error
//
// docs/guide/wire-protocol.md tells the same to implementers in other
// languages; docs/adr/0002-wire-envelope.md says why.
package wire
