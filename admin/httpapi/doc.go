// Package httpapi is the operator API of a node over HTTP: what package admin can
// be asked, with one file for each resource, which has its routes, the types of
// their parameters and their handlers. What goes over the wire is package api's.
//
// Promised: a message is answered with 202 after the store's commit, never
// before; the payload of a message is read byte by byte as it was sent; memory
// per request is bounded by the payload limit; every refusal is a problem
// document (RFC 9457) that names field, value and what to do; the OpenAPI
// document at /openapi.json is made from the code that serves.
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
// The server is called by package node.
package httpapi
