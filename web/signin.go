package web

import (
	"maps"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/gate"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// mostStrange is the most bytes of a form of somebody who is not known yet.
const mostStrange = 4 << 10

// signInRoutes are the pages for whoever the gate does not know. They protect themselves.
func (p *Pages) signInRoutes() []gate.Route {
	return []gate.Route{
		p.forAnybody("GET sign-in", p.askPassword), p.forAnybody("POST sign-in", p.takePassword),
		p.forAnybody("GET sign-in/code", p.askCode), p.forAnybody("POST sign-in/code", p.takeCode),
	}
}

// forAnybody returns the route of a page that needs no session. A page of another site may not send its form:
// it could sign a person in as somebody else.
func (p *Pages) forAnybody(pattern string, serve func(r *http.Request) answer) gate.Route {
	var foreign http.CrossOriginProtection
	return gate.Route{Pattern: below(pattern), Open: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		r.Body = http.MaxBytesReader(w, r.Body, mostStrange)
		err := foreign.Check(r)
		switch {
		case err != nil:
			p.bareProblem(r, api.ForeignOrigin.Problem("a web page of another site may sign nobody in")).send(p, w, r)
		case r.ParseForm() != nil:
			p.bareProblem(r, api.Unreadable.Problem("the form is larger than this node takes, or cannot be read")).send(p, w, r)
		default:
			serve(r).send(p, w, r)
		}
	})}
}

// bareProblem is a refusal for somebody who may have no name.
func (p *Pages) bareProblem(r *http.Request, why *api.Problem) *view {
	v := p.problemView(r, why)
	v.bare = true
	return v
}

// withHeader is an answer with a header of its own.
type withHeader struct {
	answer

	header http.Header
}

func (a withHeader) send(p *Pages, w http.ResponseWriter, r *http.Request) {
	maps.Copy(w.Header(), a.header)
	a.answer.send(p, w, r)
}

// leading leads to a page with the secret of a session. An empty one deletes the cookie.
func leading(r *http.Request, secret, to string) answer {
	return withHeader{redirect(to), http.Header{"Set-Cookie": {gate.SessionCookie(r, secret).String()}}}
}

// signing is what the pages of a sign-in show.
type signing struct {
	Name string // as it was typed
	Code bool   // the second factor is asked for
	Next string // path of the page that the person wanted
}

func (p *Pages) signInView(r *http.Request, d signing) *view {
	d.Next = p.local(r.FormValue("next"))
	return &view{template: "signin", title: "Sign in", bare: true, data: d}
}

func (p *Pages) askPassword(r *http.Request) answer { return p.signInView(r, signing{}) }

func (p *Pages) askCode(r *http.Request) answer { return p.signInView(r, signing{Code: true}) }

// takePassword begins a session, or asks for the second factor.
func (p *Pages) takePassword(r *http.Request) answer {
	name := r.PostFormValue("name")
	in, err := admin.SignIn{Service: p.Service}.Password(r.Context(), name, r.PostFormValue("password"), serve.Address(r))
	if err != nil {
		return notSignedIn(p.signInView(r, signing{Name: name}), err)
	}
	to := p.local(r.PostFormValue("next"))
	if in.Pending {
		to = withQuery(p.link("sign-in", "code"), "next", to)
	}
	return leading(r, in.Secret, to)
}

func (p *Pages) takeCode(r *http.Request) answer {
	in, err := admin.SignIn{Service: p.Service}.Code(r.Context(), gate.SessionSecret(r), r.PostFormValue("code"), serve.Address(r))
	if err != nil {
		return notSignedIn(p.signInView(r, signing{Code: true}), err)
	}
	return leading(r, in.Secret, p.local(r.PostFormValue("next")))
}

// notSignedIn shows a page of a sign-in with what was wrong.
func notSignedIn(v *view, err error) answer {
	v.refuse(err)
	v.said.Title = "Not signed in"
	return withHeader{v, problemOf(err).GetHeaders()}
}

// signOut ends the session that asks. Who asks without one has none to end.
func (p *Pages) signOut(r *http.Request) (answer, error) {
	if err := (admin.SignIn{Service: p.Service}).Out(r.Context(), gate.SessionSecret(r)); err != nil {
		return nil, err
	}
	return leading(r, "", withQuery(p.link("sign-in"), "done", "signed-out")), nil
}

// toSignIn leads somebody who is nobody to the sign-in, and from there to where they were.
func (p *Pages) toSignIn(w http.ResponseWriter, r *http.Request) {
	fragment := r.Header.Get("HX-Request") == "true"
	var next string
	if r.Method == http.MethodGet && !fragment {
		next = p.here(r)
	} else {
		next = p.cameFrom(r)
	}
	to := withQuery(p.link("sign-in"), "next", next)
	if fragment { // else htmx would put the sign-in into the page
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	redirect(to).send(p, w, r)
}
