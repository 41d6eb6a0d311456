package gate

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// allow demands from requests what the route needs, and holds room for their bodies.
func (g *gate) allow(to Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, p := g.authenticate(r, counts(r, &to))
		if p == nil && !serve.Known(r) {
			p = Crowded()
		}
		if p != nil {
			g.refuse(w, r, &to, p)
			return
		}
		name, may := who.name, who.may
		if may.Can(api.Portal) && !g.portal.Allow(name) {
			g.refuse(w, r, &to, api.TooMany.Problem(fmt.Sprintf("token %q may make %d requests a second, and %d at once: wait", name, portalPerSecond, portalBurst)).With("Retry-After", "1"))
			return
		}
		ctx := g.in(r.Context(), &who)
		if p := lacking(&to, name, &may); p != nil {
			if g.Denied != nil {
				g.Denied(ctx, cmp.Or(to.Operation, to.Pattern), p)
			}
			g.refuse(w, r.WithContext(ctx), &to, p)
			return
		}
		if to.MaxBody > 0 && r.ContentLength != 0 {
			leave, ok := g.bodies.Hold(r.Context(), r.ContentLength, to.MaxBody)
			if !ok {
				g.refuse(w, r.WithContext(ctx), &to, Crowded())
				return
			}
			leave = sync.OnceFunc(leave)
			defer leave()
			if to.Long {
				r.Body = &heldBody{r.Body, leave}
			}
		}
		if to.Long && r.Method == http.MethodGet {
			var end func()
			ctx, end = g.whileValid(ctx, r, &who)
			defer end()
		}
		to.Handler.ServeHTTP(w, r.WithContext(ctx))
	})
}

// refuse answers a request to a route with a refusal.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, to *Route, p *api.Problem) {
	if to.Page && g.Page != nil {
		g.Page(w, r, p)
		return
	}
	p.Answer(w)
}

// heldBody gives its room back once it was read. Otherwise an answer that goes on for hours would keep the
// room from others.
type heldBody struct {
	io.ReadCloser
	leave func()
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.leave()
	}
	return n, err
}

func (b *heldBody) Close() error {
	b.leave()
	return b.ReadCloser.Close()
}

// called names a caller for people.
func called(name string) string {
	if person, is := api.PersonOf(name); is {
		return fmt.Sprintf("%q", person)
	}
	return fmt.Sprintf("token %q", name)
}

// lacking returns why a caller may not use a route, or nil.
func lacking(to *Route, name string, may *api.Grant) *api.Problem {
	var p *api.Problem
	switch {
	case !may.Can(to.Right) && (to.Portal == "" || !may.Can(to.Portal)):
		has := "none that this version knows"
		if len(may.Rights) > 0 {
			has = strings.Trim(fmt.Sprint(may.Rights), "[]")
		}
		p = api.RoleLacking.Problem(fmt.Sprintf("this needs the right %s; %s has %s", to.Right, called(name), has))
	case !to.Scoped && !may.Whole():
		p = api.RoleLacking.Problem(fmt.Sprintf("this is about the whole node, and %s is only for some sites, destinations or topics", called(name)))
	default:
		return nil
	}
	return p.With("WWW-Authenticate", fmt.Sprintf(`Bearer realm="holdfast", error="insufficient_scope", scope="%s"`, to.Right))
}

// authenticate returns who asks and what they may do, or why the request is refused. If a token or a session is
// given where none is needed, it is checked all the same, so that its name is recorded and its rights bind.
func (g *gate) authenticate(r *http.Request, counts bool) (who caller, p *api.Problem) {
	header := r.Header.Get("Authorization")
	if header == "" {
		if who, found, p := g.bySession(r, counts); found {
			return who, p
		}
	}
	if !g.required() && (header == "" || g.Find == nil) {
		if by := passedOnBy(r); by != "" && !g.Anybody {
			return who, unauthorized("", "the request came through a proxy (header "+by+"), and only this machine is let in without a token: send one")
		}
		return caller{name: api.Local, may: api.Everything(), free: true}, nil
	}
	if header == "" || g.Find == nil {
		return who, unauthorized("", "send a token: Authorization: Bearer hf_…")
	}
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return who, unauthorized("", "the Authorization header must have the form: Bearer hf_…")
	}
	return g.byToken(r, strings.TrimSpace(secret))
}

// byToken returns whose token it is.
func (g *gate) byToken(r *http.Request, secret string) (who caller, p *api.Problem) {
	if !api.WellFormed(secret) {
		return who, g.refuseToken(r, "the token is mistyped or cut short; it begins with hf_ and has 52 characters")
	}
	name, rights, err := g.Find(r.Context(), sha256.Sum256([]byte(secret)))
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return who, g.refuseToken(r, "the token is not known here; it may have been deleted, or its time is over")
	case err != nil:
		few := g.few.With(slog.String("remote", serve.Address(r).String()))
		return who, g.Refuse(r.Context(), few, "look the token up", err) // anybody can make up a token
	}
	who.name = name
	if who.may, err = api.ParseGrant(rights); err != nil { // of a newer version: it may do nothing but ask who it is
		g.few.LogAttrs(r.Context(), slog.LevelWarn, "rights of a token not understood", slog.String("token", name), slog.Any("error", err))
	}
	return who, nil
}

// refuseToken answers a request whose token is not ours. After too many from one address, callers are told to
// wait, and the log stays silent. A caller with a valid token always passes.
func (g *gate) refuseToken(r *http.Request, problem string) *api.Problem {
	from := serve.Address(r)
	within, tell := g.watch.Refuse(from)
	if tell {
		g.Logger.LogAttrs(r.Context(), slog.LevelWarn, "unknown token refused",
			slog.String("method", api.Clip(r.Method)), slog.String("path", api.Clip(r.URL.Path)), slog.String("remote", from.String()))
	}
	if !within {
		return api.TooMany.Problem("too many unknown tokens come from this address; wait, and send one that is known").
			With("Retry-After", retryafter.Seconds(serve.RefusedWait)).With("Connection", "close")
	}
	return unauthorized("invalid_token", problem)
}

// passedOnBy returns the header by which a proxy says that it passes the request on.
func passedOnBy(r *http.Request) string {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "Via"} {
		if len(r.Header.Values(name)) > 0 {
			return name
		}
	}
	return ""
}

func unauthorized(code, detail string) *api.Problem {
	challenge := `Bearer realm="holdfast"`
	if code != "" {
		challenge += fmt.Sprintf(`, error="%s"`, code)
	}
	return api.Unauthorized.Problem(detail).With("WWW-Authenticate", challenge)
}

// Crowded is the answer to a caller for whom there is no room now.
func Crowded() *api.Problem {
	return api.Busy.Problem("the node has more requests in hand than it has room for; nothing was done: send the same request again in a moment").
		With("Retry-After", "1")
}
