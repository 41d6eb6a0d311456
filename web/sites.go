package web

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// sitePages are the pages of a central's sites, and of what they said of their calls.
func (p *Pages) sitePages() []page {
	return append([]page{
		{"GET sites", "list-sites", api.Read, false, p.sites},
		{"POST sites", "add-site", api.Admin, false, p.addSite},
		{"GET sites/{name}", "get-site", api.Read, false, p.site},
		{"GET sites/{name}/rotate", "ask-rotate-site", api.Admin, false, p.askRotateSite},
		{"POST sites/{name}/rotate", "rotate-site", api.Admin, false, p.rotateSite},
		{"GET sites/{name}/revoke", "ask-revoke-site", api.Admin, false, p.askRevokeSite},
		{"POST sites/{name}/revoke", "revoke-site", api.Admin, false, p.revokeSite},
		{"GET site-calls", "list-site-calls", api.Read, false, p.siteCalls},
		{"GET site-calls/{name}/{id}", "get-site-call", api.Read, false, p.siteCall},
	}, p.siteMessagePages()...)
}

type siteList struct {
	Sites []api.Site
	Add   action
}

func (p *Pages) sites(r *http.Request) (answer, error) {
	all, err := admin.Sites{Service: p.Service}.List(r.Context())
	if err != nil {
		return nil, err
	}
	data := &siteList{Sites: all.Sites, Add: button(r, api.Admin, "Add site", "site", "main", p.link("sites"))}
	return &view{template: "sites", title: "Sites", rail: "Sites", live: true, data: data}, nil
}

func (p *Pages) addSite(r *http.Request) (answer, error) {
	made, err := admin.Sites{Service: p.Service}.Add(r.Context(), &api.NewSite{Name: r.PostFormValue("name")})
	if err != nil {
		return nil, err
	}
	return p.siteToken("Site "+made.Name+" added", &made), nil
}

func (p *Pages) siteToken(title string, made *api.SiteToken) answer {
	return once{&view{template: "secret", title: title, rail: "Sites", data: &secret{
		Label: "Token with which it enrolls", Secret: made.Token, Until: made.Expires, Back: p.link("sites", made.Name),
		Text: "Give it to holdfast enroll at the site. This node keeps only a hash of it, and accepts it once.",
	}}}
}

// siteView is what the page of a site shows.
type siteView struct {
	api.Site

	State    string // of the messages that are listed
	States   []string
	Messages []api.Message
	Next     string
	Asked    time.Time // when the site answered
	Stale    string    // why what is shown is not from the site itself, now; empty: it is
	Actions  []action
}

// siteWait is how long the page of a site waits for the site's answer.
const siteWait = 5 * time.Second

func (p *Pages) site(r *http.Request) (answer, error) {
	all, name := admin.Sites{Service: p.Service}, r.PathValue("name")
	one, err := all.Get(r.Context(), name)
	if err != nil {
		return nil, err
	}
	data := &siteView{Site: one, State: r.FormValue("state"), States: stateNames(), Asked: time.Now()}
	data.Actions = []action{
		asking(r, api.Admin, "New credential", "shield", "", p.link("sites", name, "rotate")),
		asking(r, api.Admin, "Revoke", "stop", "danger", p.link("sites", name, "revoke")),
	}
	v := &view{template: "site", title: "Site " + api.Clip(name), rail: "Sites", data: data}
	if one.State == "revoked" {
		data.Actions, data.Stale = nil, "the site is revoked, and cannot be asked"
		return v, nil
	}
	if data.State == "" {
		data.State = "parked"
	}
	there, err := all.At(r.Context(), name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), siteWait)
	defer cancel()
	found, err := there.List(ctx, &admin.MessageQuery{States: []string{data.State}, After: r.FormValue("after"), Limit: usualRows})
	switch why := problemOf(err); {
	case err == nil:
		data.Messages, data.Next, data.Asked = found.Messages, found.Next, time.Now()
	case why.Status == http.StatusUnprocessableEntity || why.Status == http.StatusForbidden:
		return v.instead(err)
	default:
		data.Stale = why.Detail
	}
	return v, nil
}

func (p *Pages) askRotateSite(r *http.Request) (answer, error) {
	name := r.PathValue("name")
	if _, err := (admin.Sites{Service: p.Service}).Get(r.Context(), name); err != nil {
		return nil, err
	}
	return p.askFirst(r, "Sites", "New credential for site "+name, question{
		Text: "The next page shows a token with which the site enrolls again. Its present credential stays valid until then, and for a day after.",
		Back: p.link("sites", name), Command: "holdfast sites rotate " + shellQuote(name), Verb: "Make a token", Icon: "shield", Tone: "main",
		Inputs: []input{{Name: "now", Kind: "tick", Label: "End its credential at once, as if it was stolen: the site is shut out until it enrolls again"}},
	}), nil
}

func (p *Pages) rotateSite(r *http.Request) (answer, error) {
	made, err := admin.Sites{Service: p.Service}.Rotate(r.Context(), r.PathValue("name"), r.PostFormValue("now") != "")
	if err != nil {
		return nil, err
	}
	return p.siteToken("New credential for site "+made.Name, &made), nil
}

func (p *Pages) askRevokeSite(r *http.Request) (answer, error) {
	name := r.PathValue("name")
	if _, err := (admin.Sites{Service: p.Service}).Get(r.Context(), name); err != nil {
		return nil, err
	}
	return p.askFirst(r, "Sites", "Revoke site "+name, question{
		Text: "Its credential and its token end at once. Messages that wait there go on waiting. Its name is free again. Type the name to go on.",
		Back: p.link("sites", name), Command: "holdfast sites revoke " + shellQuote(name), Verb: "Revoke", Icon: "stop", Tone: "danger",
		Inputs: []input{{Name: "name", Label: "Name of the site", Required: true}},
	}), nil
}

func (p *Pages) revokeSite(r *http.Request) (answer, error) {
	name := r.PathValue("name")
	if r.PostFormValue("name") != name {
		return nil, api.Faulty(api.Fault{Field: "name", Value: api.Clip(r.PostFormValue("name")), Problem: "is not the name of the site, which must be typed to revoke it"})
	}
	if err := (admin.Sites{Service: p.Service}).Revoke(r.Context(), name); err != nil {
		return nil, err
	}
	return redirect(withQuery(p.link("sites"), "done", "revoked")), nil
}
