// Package chat sends notifications to people by HTTP: to a Teams room, a Slack channel, ntfy,
// Gotify, or a program of one's own behind a signed webhook (NO-07).
//
// It promises one request per recipient, with an outcome that does not depend on other recipients.
// Outcomes are classified by type and code. Texts are cut to what the other side accepts, at a
// whole character, and say that they were cut. Redirects are not followed, and at most 4 KiB of an
// answer are read. No secret appears in an error, a log line or a report, even if the other side
// repeats it (NO-11).
//
// It does not promise that people see a notification only once: if an answer was lost, they may see
// it twice. A webhook carries the same id each time.
package chat
