package gate

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// Names of the cookie of a session. A browser takes the first one over TLS only, and from no other host.
const (
	secureCookie = "__Host-holdfast"
	plainCookie  = "holdfast"
)

// overTLS reports whether the browser speaks TLS, with the node or with a proxy before it. Who lies about that
// harms nobody but himself.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// SessionCookie returns the cookie for the secret of a session. An empty secret deletes it.
func SessionCookie(r *http.Request, secret string) *http.Cookie {
	c := &http.Cookie{Name: plainCookie, Value: secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if overTLS(r) {
		c.Name, c.Secure = secureCookie, true
	}
	if secret == "" {
		c.MaxAge = -1
	}
	return c
}

// SessionSecret returns the secret in the cookie of a request, or nothing.
func SessionSecret(r *http.Request) string {
	name := plainCookie
	if overTLS(r) {
		name = secureCookie
	}
	c, err := r.Cookie(name)
	if err != nil || !api.WellFormedSession(c.Value) {
		return ""
	}
	return c.Value
}

// counts reports whether a person makes the request. A page that is left open asks for news of itself, and reads
// a stream of events: then nobody may be there.
func counts(r *http.Request, to *Route) bool {
	return r.Method != http.MethodGet || !to.Long && r.Header.Get("HX-Request") == ""
}

// bySession returns who asks by a session, if the request has a cookie of one that lives. A browser sends it
// with whatever request a page makes, so one of a foreign page may change nothing.
func (g *gate) bySession(r *http.Request, counts bool) (who caller, found bool, p *api.Problem) {
	secret := SessionSecret(r)
	if secret == "" || g.Session == nil {
		return who, false, nil
	}
	id, actor, rights, err := g.Session(r.Context(), sha256.Sum256([]byte(secret)), counts)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return who, false, nil
	case err != nil:
		few := g.few.With(slog.String("remote", serve.Address(r).String()))
		return who, true, g.Refuse(r.Context(), few, "look the session up", err)
	}
	if err := g.foreign.Check(r); err != nil {
		return who, true, foreignOrigin(r)
	}
	who = caller{name: actor, session: id}
	if who.may, err = api.ParseGrant(rights); err != nil { // of a newer version
		g.few.LogAttrs(r.Context(), slog.LevelWarn, "rights of a person not understood", slog.String("person", actor), slog.Any("error", err))
	}
	return who, true, nil
}

// caller is who asks.
type caller struct {
	name    string
	may     api.Grant
	session string // its id; empty: none
	free    bool   // no credential was needed
}

// in returns a context in which the caller asks.
func (g *gate) in(ctx context.Context, who *caller) context.Context {
	ctx = g.As(ctx, who.name, who.may)
	if who.session != "" && g.InSession != nil {
		ctx = g.InSession(ctx, who.session)
	}
	return ctx
}

// required reports whether a request needs a token or a session.
func (g *gate) required() bool { return g.AuthRequired || g.Closed != nil && g.Closed() }
