// Package link joins a site to central and implements both ends: enrolment, forwarding of messages,
// and commands of an operator from central to the site. The site always dials; it opens no port
// (design: section 10).
//
// It promises:
//   - A site has its own credential. It makes the credential itself, keeps it in
//     a file of mode 0600, and sends it only over TLS or within one machine.
//     Central keeps a hash of it. No site can write as another: central refuses
//     each row that names another site.
//   - A forwarded message is delivered when central says that it has committed.
//     A conflict, or content that cannot be read, parks the message. Any other
//     failure is retried (SF-19, SF-20).
//   - When central's store has changed (restored from a backup, failed over to
//     an older replica), the site sends again what it had forwarded. Central
//     recognizes by their ids the messages that it has (NO-20).
//   - A command is answered, or the caller learns that the site is not reachable
//     and when it was last seen. A command that arrives twice is done once (SF-28).
//   - Sites that all come back at once are let in a few at a time; none starves.
//   - Central gets each record of a site's audit log once, as the site has it. A gap of any length is
//     filled, whoever lost the records, as long as the site has them. Nothing at central is overwritten.
//
// A command whose answer was lost may have been done; the error says so.
//
//	dispatcher ─► Site ──POST /v1/link/messages──► Central ─► Receiver
//	audit log ──► Site ──POST /v1/link/telemetry─► Central ─► Copies
//	Outbox ◄───── Site ──POST /v1/link/poll──────► Central ◄─ Ask
//
// Packages wire and transport define envelopes, batches and replies.
package link
