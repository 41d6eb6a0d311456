// Package client is the Go client of a node's operator API (package api). The command
// line is its first user; other programs may use it too. Its methods are grouped by
// resource like the API: c.Messages().Retry, c.Lists().Put.
//
// Promised: each method sends one request, once. A refusal of the node is an
// *api.Problem. If no node answers, the error wraps ErrUnreachable. A token goes to
// another machine over TLS only.
//
// Not promised: a deadline, which the context may set, and retries. A method that may be
// called again with the same id says so.
package client
