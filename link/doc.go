// Package link joins a site to central, both ends of it: enrolment, forwarding
// of messages, and the operator's commands from central to the site. The site
// dials, always; no port is open at a site (design: section 10).
//
// It promises:
//   - A site acts under a credential of its own, which it makes itself, keeps in
//     a file of mode 0600, and sends over TLS only, or within one machine.
//     Central keeps a hash of it. No site can write as another: what names
//     another site is refused, row by row.
//   - A forwarded message is delivered when central says that its own commit is
//     made; conflict and content that nobody can read park it, everything else
//     is tried again (SF-19, SF-20).
//   - When central's store is another one than before (restored from a backup,
//     failed over to an older replica), the site sends again what it had
//     forwarded; central knows by the ids what it has (NO-20).
//   - A command is answered, or the asker is told that the site is not
//     reachable and when it was last seen; a command that comes twice is done
//     once (SF-28).
//   - Sites that come back all at once are let in a few at a time; none starves.
//
// It does not promise that a command whose answer was lost was not done: the
// error says so.
//
//	dispatcher ─► Site ──POST /v1/link/messages──► Central ─► Receiver
//	Outbox ◄───── Site ──POST /v1/link/poll──────► Central ◄─ Ask
//
// Envelopes, batches and replies are those of packages wire and transport.
package link
