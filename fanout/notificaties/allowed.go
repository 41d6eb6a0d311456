package notificaties

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/serve"
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
	ID        string // its client id
	Secret    string // that signs its tokens; never empty
	Scopes    []Scope
	Superuser bool // it has all scopes
}

// Actor returns the name under which the journal has what a client does.
func (c *Client) Actor() string { return "notificaties:" + clip(c.ID) }

// may reports whether the client has one of the scopes.
func (c *Client) may(scopes []Scope) bool {
	return c.Superuser || slices.ContainsFunc(scopes, func(s Scope) bool { return slices.Contains(c.Scopes, s) })
}

// allowed returns who asks, or refuses a caller who has none of the scopes. Until it returns, the caller counts
// as a stranger: read no body before.
func (s *Server) allowed(r *http.Request, scopes ...Scope) (Client, error) {
	c, err := s.identify(r)
	if err != nil {
		return c, s.refuse(r, err)
	}
	if !serve.Known(r) {
		return c, busy()
	}
	if s.Authority != nil && len(c.Scopes) == 0 && !c.Superuser {
		if c.Scopes, c.Superuser, err = s.Authority.rights(r.Context(), c.ID); err != nil {
			return c, err
		}
	}
	if !c.may(scopes) {
		return c, s.called(r, c, "notificaties-"+strings.ToLower(r.Method), r.URL.Path, lacking(scopes))
	}
	return c, nil
}

func lacking(scopes []Scope) error {
	return forbidden("permission_denied", "Deze applicatie mist de scope "+string(scopes[0])+".")
}

// identify returns the client that has signed the token of a request.
func (s *Server) identify(r *http.Request) (c Client, err error) {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return c, forbidden("permission_denied", "Er is geen token: stuur Authorization: Bearer met een JWT.")
	}
	t, err := parseToken(text)
	if err != nil {
		return c, err
	}
	if t.client == nil {
		return c, forbidden("missing-client-identifier", "Het JWT heeft geen client_id.")
	}
	id, _ := t.client.(string)
	if c, ok = s.Client(id); !ok || c.Secret == "" {
		return c, forbidden("invalid-client-identifier", "De client_id van het JWT is hier niet bekend.")
	}
	return c, t.verify(c.Secret, time.Now(), s.Leeway)
}

// refuse returns why a caller is not let in. After too many refusals callers of one address are told to wait.
func (s *Server) refuse(r *http.Request, err error) error {
	p, ok := errors.AsType[*Problem](err)
	if !ok || r.Header.Get("Authorization") == "" {
		return err
	}
	from := serve.Address(r)
	within, tell := s.watch.Refuse(from)
	if tell {
		s.Logger.LogAttrs(r.Context(), slog.LevelWarn, "token of the Notificaties API refused", slog.String("code", p.Code), slog.String("remote", from.String()))
	}
	if !within {
		return throttled()
	}
	return err
}
