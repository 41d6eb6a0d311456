// Package httpapi is the operator API of a node over HTTP: it offers what package admin
// offers. One file per resource holds its routes, the types of their parameters and their
// handlers. The types on the wire are those of package api.
//
// Promised: a message is answered with 202 after the store's commit, never before. The
// payload of a message is read byte by byte as it was sent. The payload limit bounds the
// memory of a request. Every refusal is a problem document (RFC 9457) that names field,
// value and what to do. The OpenAPI document at /openapi.json is made from the code that
// serves.
//
// Not promised: rate limits. A person or program with a token is trusted not to
// flood its own node.
//
// Who may do what:
//
//	request ──► guard ──► route ──► token ──► role ──► handler
//	            │         │         │         └ 403: names the role
//	            │         │         └ 401: none, malformed or unknown
//	            │         └ 404, 405
//	            └ 403: a browser's request from a foreign page, when no token is asked
//
// Package node calls the server.
package httpapi
