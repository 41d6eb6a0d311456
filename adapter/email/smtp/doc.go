// Package smtp implements the client side of one SMTP connection (RFC 5321). It knows nothing about
// the content of mails. Its caller dials, decides what a reply means, and keeps connections.
//
// It promises that a command is sent only when nothing is left unread, and has one whole reply. So
// no reply is taken for that of another command: a reply that comes twice or too early is ErrTurn.
// A reply may be a bare code. Its lines may have any length; their beginning is kept, and the whole
// is bounded. A mail is complete only with its last byte: an error before that is ErrIncomplete.
// Each step has its own time-out. After an error, or a reply that closes the connection (421),
// nothing can be sent any more.
//
//	New → Greeting → Hello ─┬→ (Auth) → Offer ─┬→ Data ─→ Offer …
//	        ↑               │                  │
//	     Encrypt        StartTLS               └→ Clear → Offer …
//	   (implicit)           └→ Encrypt → Hello
//
// Hello is sent once for each layer of security, and never between two mails: servers count it, or
// forget at it who we are.
package smtp
