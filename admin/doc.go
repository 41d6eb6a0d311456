// Package admin is the operator API of a node: the HTTP server that a node
// mounts.
//
// Promised: a message is answered with 202 after the store's commit, never
// before; what a person decides (retry, discard, done) names the state that it
// was seen in, and is refused rather than applied to another; the payload of a
// message is stored and shown byte by byte as it was sent; memory per request
// is bounded by the payload limit; every refusal is a problem document
// (RFC 9457) that names field, value and what to do; the OpenAPI document at
// /openapi.json is made from the code that serves.
//
// Not promised: order among requests that overlap, that a page of a list is a
// snapshot, and rate limits: a person or program with a token is trusted not
// to flood its own node.
//
// Who may do what:
//
//	request ──► guard ──► route ──► token ──► role ──► handler
//	            │         │         │         └ 403: names the role
//	            │         │         └ 401: none, malformed or unknown
//	            │         └ 404, 405
//	            └ 403: a browser's request from a foreign page, when no token is asked
//
// The server is called by package node. Package api has what it takes and answers,
// package client asks it.
package admin
