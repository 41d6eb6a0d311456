// Package client asks a node what its operator API (package api) can be asked.
// The command line is its first user; programs may be others. What the API has by
// resource, the client has too: c.Messages().Retry, c.Lists().Put.
//
// Promised: each method is one request, asked once; a refusal of the node is an
// *api.Problem; where no node answers, the error wraps ErrUnreachable; a token
// goes to another machine over TLS only.
//
// Not promised: a deadline, which the context has, and that a request is tried
// again: each method that may be called again with the same id says so.
package client
