// Package chat brings notifications to people by HTTP: a Teams room, a Slack
// channel, ntfy, Gotify, or a program of one's own behind a signed webhook
// (NO-07).
//
// What it promises: one request per recipient, whose end does not depend on
// that of the others; an outcome that is classified by type and code; texts that are
// cut to what the other side takes, on a whole character, and say so; no
// redirect followed, no more than 4 KiB of an answer read; and no secret in an
// error, a log line or a report, also when the other side repeats it (NO-11).
// What it does not: an answer that was lost may mean that people see a
// notification twice. A webhook carries the same id each time.
package chat
