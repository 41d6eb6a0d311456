package notificaties

import (
	"net/http"
)

// Scope is one thing that a client may do.
type Scope string

// The scopes.
const (
	Consume Scope = "notificaties.consumeren"
	Publish Scope = "notificaties.publiceren"
)

// Client is who asks.
type Client struct {
	ID        string // its client id; set by whoever finds it
	Secret    string // that signs its tokens
	Scopes    []Scope
	Superuser bool // it has all scopes
}

// Actor returns the name under which the journal has what a client does.
func (c *Client) Actor() string { return "notificaties:" + clip(c.ID) }

// allowed returns who asks, or refuses a caller who has none of the scopes.
func (s *Server) allowed(r *http.Request, scopes ...Scope) (Client, error) {
	return Client{}, forbidden("permission_denied", "Er is geen token.")
}
