// Package admin is what operators can ask of a node and do there, in plain Go:
// messages, the inbox, destinations, notifications, channels, lists, tokens, sites
// and the node itself. Each is a type over one Service. Package httpapi offers it over
// HTTP; pages and programs may call it as well.
//
// Promised: a person's decision (retry, discard, done) names the state that it starts
// from, and is refused in any other state. The payload of a message is stored and shown
// byte by byte as it was sent. A refusal is an *api.Problem, which reports all faults at
// once. The context says who asks (As); histories and the log record it, and nothing
// outside of the caller's scope is shown or changed.
//
// Not promised: that the caller has the right to ask, which whoever calls has checked;
// the order of requests that overlap; that a page of a list is a snapshot.
package admin
