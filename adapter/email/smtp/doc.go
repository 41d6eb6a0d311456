// Package smtp is the client's side of one connection to a server that takes
// mail (RFC 5321), and knows nothing of what the mail is about. Its caller
// dials, decides what a reply means, and keeps connections.
//
// What it promises: a command is sent only when nothing is left unread, and has
// one whole reply; so no reply is taken for that of another command, and who
// sees one twice, or too early, gets ErrTurn. A reply may be a code alone, its
// lines as long as they like, of which the beginning is kept, and all of it is
// bounded. A mail is complete with its last byte only: an error before that is
// ErrIncomplete. Each step has a time-out of its own. After an error, or a reply that
// closes the connection (421), nothing can be sent any more.
//
//	New → Greeting → Hello ─┬→ (Auth) → Offer ─┬→ Data ─→ Offer …
//	        ↑               │                  │
//	     Encrypt        StartTLS               └→ Clear → Offer …
//	   (implicit)           └→ Encrypt → Hello
//
// Hello is said once for each layer of security, and never between two mails:
// servers count it, or forget at it who we are.
package smtp
