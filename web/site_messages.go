package web

import (
	"net/http"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// siteMessagePages are the pages of messages that are at sites. Each asks the site.
func (p *Pages) siteMessagePages() []page {
	return []page{
		{"GET sites/{name}/messages/{id}", "get-site-message", api.Read, true, p.siteMessage},
		{"POST sites/{name}/messages/{id}/retry", "retry-site-message", api.Operate, false, p.decideAt("retried", retryThere)},
		{"POST sites/{name}/messages/{id}/run", "run-site-message", api.Operate, false, p.decideAt("run", runThere)},
		{"GET sites/{name}/messages/{id}/discard", "ask-discard-site-message", api.Operate, false, p.askDiscardAt},
		{"POST sites/{name}/messages/{id}/discard", "discard-site-message", api.Operate, false, p.decideAt("discarded", discardThere)},
	}
}

// siteMessage is what the page of a message at a site shows.
type siteMessageView struct {
	*api.MessageDetail

	Site     string
	Shown    string
	Timeline []moment
	Content  content
	Actions  []action
	Commands []string
}

func (p *Pages) oneAt(r *http.Request) (*view, error) {
	site, id := r.PathValue("name"), r.PathValue("id")
	there, err := admin.Sites{Service: p.Service}.At(r.Context(), site)
	if err != nil {
		return nil, err
	}
	m, err := there.Get(r.Context(), id)
	if err != nil {
		return nil, err
	}
	d := &siteMessageView{MessageDetail: &m, Site: site, Shown: shownState(&m.Message), Timeline: timelineOf(&m), Content: contentOf(&m)}
	d.Actions, d.Commands = p.actionsAt(r, site, &m.Message)
	return &view{template: "site_message", title: "Message " + api.Clip(m.ID), rail: "Sites", data: d}, nil
}

// actionsAt are what a person may do about a message at a site, and the same as commands.
func (p *Pages) actionsAt(r *http.Request, site string, m *api.Message) (list []action, commands []string) {
	state, err := holdfast.ParseState(m.State)
	for _, a := range []struct {
		label, icon, tone, verb, past string
		of                            holdfast.Verb
	}{
		{"Retry", "retry", "main", "retry", "retried", holdfast.VerbRequeue},
		{"Run now", "play", "", "run", "run", holdfast.VerbReschedule},
		{"Discard", "trash", "danger", "discard", "discarded", holdfast.VerbDiscard},
	} {
		one := button(r, api.Operate, a.label, a.icon, a.tone, p.link("sites", site, "messages", m.ID, a.verb))
		one.Asks = a.verb == "discard"
		if err != nil || !slices.Contains(a.of.States(), state) || m.Discarding {
			one.Why = "a message that is " + shownState(m) + " cannot be " + a.past
		} else {
			commands = append(commands, "holdfast messages "+a.verb+" --site "+shellQuote(site)+" "+shellQuote(m.ID))
		}
		list = append(list, one)
	}
	return list, commands
}

func (p *Pages) siteMessage(r *http.Request) (answer, error) {
	v, err := p.oneAt(r)
	if err != nil {
		return nil, err
	}
	return told{v, []any{"site", r.PathValue("name")}}, nil
}

// there makes a decision about a message at a site.
type there func(r *http.Request, m admin.Messages) error

func retryThere(r *http.Request, m admin.Messages) error {
	_, err := m.Retry(r.Context(), r.PathValue("id"), &api.RetryRequest{})
	return err
}

func runThere(r *http.Request, m admin.Messages) error {
	_, err := m.Run(r.Context(), r.PathValue("id"))
	return err
}

func discardThere(r *http.Request, m admin.Messages) error {
	if reasonOf(r) == "" {
		return noReason()
	}
	_, err := m.Discard(r.Context(), r.PathValue("id"))
	return err
}

// decideAt relays a decision to a site, and shows the message as it is then, or what the site answered.
func (p *Pages) decideAt(done string, do there) func(r *http.Request) (answer, error) {
	return func(r *http.Request) (answer, error) {
		site, id := r.PathValue("name"), r.PathValue("id")
		m, err := admin.Sites{Service: p.Service}.At(r.Context(), site)
		if err != nil {
			return nil, err
		}
		with := []any{"site", site}
		if reason := reasonOf(r); reason != "" {
			with = append(with, "reason", api.Clip(reason))
		}
		if err = do(r, m); err == nil {
			return told{redirect(withQuery(p.link("sites", site, "messages", id), "done", done)), with}, nil
		}
		v, gone := p.oneAt(r)
		if gone != nil {
			return nil, err
		}
		v.status, v.said = problemOf(err).Status, refused(err)
		return told{v, with}, err
	}
}

func (p *Pages) askDiscardAt(r *http.Request) (answer, error) {
	if _, err := p.oneAt(r); err != nil {
		return nil, err
	}
	site, id := r.PathValue("name"), r.PathValue("id")
	return p.askFirst(r, "Sites", "Discard message "+id+" at "+site, question{
		Text: "It is not tried any more. Its row is kept there for its retention, and a retry takes it up again.", Back: p.link("sites", site, "messages", id),
		Verb: "Discard the message", Icon: "trash", Tone: "danger", Reason: true,
	}), nil
}
