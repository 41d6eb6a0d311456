package web

import (
	"net/http"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// messageDetail is what the page of a message shows.
type messageDetail struct {
	*api.MessageDetail

	Shown    string
	Timeline []moment
	Content  content
	Actions  []action
	Story    string // path of the part that changes
	File     string // path of the payload as a file
	Later    string // path of the form that reschedules it; empty: its state does not allow that, or the caller may not
	Lane     string // path of its destination; empty: it has no page
}

// action is a button of a page.
type action struct {
	Label, Icon, Tone string
	Href              string // where its form goes, or where it leads
	Asks              bool   // it leads to a page that asks
	Why               string // why it cannot be done; empty: it can
}

// one returns the page of a message.
func (p *Pages) one(r *http.Request) (*view, error) {
	id := r.PathValue("id")
	m, err := admin.Messages{Service: p.Service}.Get(r.Context(), id)
	if err != nil {
		return nil, err
	}
	d := &messageDetail{MessageDetail: &m, Shown: shownState(&m.Message), Timeline: timelineOf(&m), Content: contentOf(&m), Story: p.link("messages", m.ID, "story"), File: p.link("messages", m.ID, "payload")}
	d.Actions = p.actions(r, &m.Message)
	if d.Actions[1].Why == "" {
		d.Later = p.link("messages", m.ID, "reschedule")
	}
	if kind, name := laneKind(m.Destination); kind == "destinations" {
		d.Lane = p.link("destinations", name)
	}
	return &view{template: "message", title: "Message " + api.Clip(m.ID), rail: "Messages", data: d}, nil
}

func (p *Pages) message(r *http.Request) (answer, error) {
	v, err := p.one(r)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// story is the part of a message's page that changes, without content: it is asked for again and again.
func (p *Pages) story(r *http.Request) (answer, error) {
	v, err := p.one(r)
	if err != nil {
		return nil, err
	}
	v.part = "story"
	return v, nil
}

// actions are what a person may do about a message in its state.
func (p *Pages) actions(r *http.Request, m *api.Message) (list []action) {
	why := lacks(r)
	state, err := holdfast.ParseState(m.State)
	for _, a := range []struct {
		name, label, icon, tone string
		verb                    holdfast.Verb
		asks                    bool
	}{
		{"retry", "Retry", "retry", "main", holdfast.VerbRequeue, false},
		{"run", "Run now", "play", "", holdfast.VerbReschedule, false},
		{"discard", "Discard", "trash", "danger", holdfast.VerbDiscard, true},
	} {
		one := action{Label: a.label, Icon: a.icon, Tone: a.tone, Asks: a.asks, Href: p.link("messages", m.ID, a.name), Why: why}
		fits := err == nil && slices.Contains(a.verb.States(), state) && !m.Discarding
		if !fits {
			one.Why = "a message that is " + shownState(m) + " cannot be " + map[string]string{"retry": "retried", "run": "run", "discard": "discarded"}[a.name]
		}
		list = append(list, one)
	}
	return list
}

// lacks says why the caller may not operate; empty: it may.
func lacks(r *http.Request) string {
	may := admin.Granted(r.Context())
	if may.Can(api.Operate) {
		return ""
	}
	return "this needs the right operate, which " + admin.Actor(r.Context()) + " does not have"
}

// decided leads back to a message, or shows it with what was not done.
func (p *Pages) decided(r *http.Request, done string, err error, with ...any) (answer, error) {
	if err == nil {
		return told{redirect(withQuery(p.link("messages", r.PathValue("id")), "done", done)), with}, nil
	}
	status := problemOf(err).Status
	v, gone := p.one(r)
	if gone != nil {
		return nil, err
	}
	v.status, v.said = status, refused(err)
	return told{v, with}, err
}

func (p *Pages) retry(r *http.Request) (answer, error) {
	req := &api.RetryRequest{TTL: r.PostFormValue("ttl"), Force: r.PostFormValue("force") != ""}
	_, err := admin.Messages{Service: p.Service}.Retry(r.Context(), r.PathValue("id"), req)
	return p.decided(r, "retried", err)
}

func (p *Pages) run(r *http.Request) (answer, error) {
	_, err := admin.Messages{Service: p.Service}.Run(r.Context(), r.PathValue("id"))
	return p.decided(r, "run", err)
}

func (p *Pages) reschedule(r *http.Request) (answer, error) {
	_, err := admin.Messages{Service: p.Service}.Reschedule(r.Context(), r.PathValue("id"), &api.RescheduleRequest{In: r.PostFormValue("in"), At: r.PostFormValue("at")})
	return p.decided(r, "rescheduled", err)
}

// askDiscard asks for a confirmation and a reason.
func (p *Pages) askDiscard(r *http.Request) (answer, error) {
	if _, err := p.one(r); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	return &view{template: "discard", title: "Discard", rail: "Messages", data: &selected{IDs: []string{id}, Verb: "discard", Next: p.link("messages", id)}}, nil
}

func (p *Pages) discard(r *http.Request) (answer, error) {
	reason := reasonOf(r)
	if reason == "" {
		return p.decided(r, "", noReason())
	}
	_, err := admin.Messages{Service: p.Service}.Discard(r.Context(), r.PathValue("id"))
	return p.decided(r, "discarded", err, "reason", api.Clip(reason))
}
