package web

import (
	"maps"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Refuse shows a refusal of the gate. A person who is not signed in is led to the sign-in; a program that sent a token is not.
func (p *Pages) Refuse(w http.ResponseWriter, r *http.Request, why *api.Problem) {
	secure(w.Header())
	if why.Status == http.StatusUnauthorized && p.People != nil && r.Header.Get("Authorization") == "" {
		p.toSignIn(w, r)
		return
	}
	maps.Copy(w.Header(), why.GetHeaders())
	v := p.problemView(r, why)
	v.bare = why.Type != api.RoleLacking.Problem("").Type // otherwise the gate may not know yet who asks
	v.send(p, w, r)
}

// problemView is the page of a refusal or a fault.
func (p *Pages) problemView(r *http.Request, why *api.Problem) *view {
	v := &view{status: why.Status, template: "problem", title: why.Title, data: problem{Problem: why, Back: p.link()}}
	if r.Method == http.MethodPost {
		v.data = problem{Problem: why, Back: p.here(r)}
	}
	return v
}

type problem struct {
	*api.Problem

	Back string
}

// unknown answers for a path that is no page.
func unknown(*http.Request) (answer, error) {
	p := api.NotFound.Problem("it may have been moved, or the address is mistyped")
	p.Title = "there is no such page"
	return nil, p
}

// refused tells on the page itself what was not done.
func refused(err error) *notice {
	return &notice{Tone: "bad", Title: "Not done", Text: upper(problemOf(err).Detail) + "."}
}
