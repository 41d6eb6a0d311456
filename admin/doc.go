// Package admin is what operators can ask of a node and do there, in plain Go:
// messages, the inbox, destinations, notifications, channels, lists, tokens, sites
// and the node itself, each a type over one Service. Package httpapi offers it over
// HTTP; pages and programs may call it as well.
//
// Promised: what a person decides (retry, discard, done) names the state that it
// was seen in, and is refused rather than applied to another; the payload of a
// message is stored and shown byte by byte as it was sent; a refusal is an
// *api.Problem, which says all that is wrong at once. Who asks is in the context
// (As), and stands in histories and in the log.
//
// Not promised: who may do what, which is whoever's who calls; order among
// questions that overlap; that a page of a list is a snapshot.
package admin
