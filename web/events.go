package web

import (
	"net/http"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// eventPages are the pages of events, topics and subscriptions.
func (p *Pages) eventPages() []page {
	return append(p.subscriptionPages(),
		page{"GET events", "list-events", api.Read, false, p.events},
		page{"GET events/{id}", "get-event", api.Read, true, p.event},
		page{"GET events/{id}/resend", "ask-resend-event", api.Operate, false, p.askResend},
		page{"POST events/{id}/resend", "resend-event", api.Operate, false, p.resend},
		page{"GET topics", "list-topics", api.Read, false, p.topics},
	)
}

// eventRow is an event of a list, with where it is.
type eventRow struct {
	api.StoredEvent

	Href string
}

type eventsView struct {
	Events []eventRow
	Next   string
	Topics []api.Topic
}

// eventPath returns the path of an event, or of what is done to it. Two sources may have the same id.
func (p *Pages) eventPath(source string, parts ...string) string {
	return withQuery(p.link(append([]string{"events"}, parts...)...), "source", source)
}

func (p *Pages) events(r *http.Request) (answer, error) {
	data := &eventsView{}
	v := &view{template: "events", title: "Events", rail: "Events", live: true, data: data}
	found, err := admin.Events{Service: p.Service}.List(r.Context(), r.FormValue("topic"), r.FormValue("after"), pageRows)
	if err != nil {
		return v.instead(err)
	}
	for i := range found.Events {
		e := found.Events[i]
		data.Events = append(data.Events, eventRow{e, p.eventPath(e.Source, e.ID)})
	}
	data.Next = found.Next
	if all, err := (admin.Topics{Service: p.Service}).List(r.Context()); err == nil { // for the choice of one
		data.Topics = all.Topics
	}
	return v, nil
}

type eventView struct {
	api.EventDetail

	Content content
	Explain *api.EventExplanation
	Resend  action
}

func (p *Pages) event(r *http.Request) (answer, error) {
	source, id := r.FormValue("source"), r.PathValue("id")
	all := admin.Events{Service: p.Service}
	e, err := all.Get(r.Context(), source, id, r.FormValue("after"))
	if err != nil {
		return nil, err
	}
	data := &eventView{EventDetail: e, Content: shownContent(e.Data, len(e.Data) > 0)}
	explained, err := all.Explain(r.Context(), e.Source, id, r.FormValue("from"), pageRows)
	if err != nil {
		return nil, err
	}
	data.Explain = &explained
	data.Resend = asking(r, api.Operate, "Send again", "retry", "main", p.eventPath(e.Source, id, "resend"))
	return &view{template: "event", title: "Event " + e.ID, rail: "Events", data: data}, nil
}

func (p *Pages) askResend(r *http.Request) (answer, error) {
	source, id := r.FormValue("source"), r.PathValue("id")
	e, err := admin.Events{Service: p.Service}.Get(r.Context(), source, id, "")
	if err != nil {
		return nil, err
	}
	return p.askFirst(r, "Events", "Send event "+id+" again", question{
		Text:    "Each subscription that it was for gets it once more, with the same webhook-id, so that a receiver can tell that it knows it.",
		Command: "holdfast events resend " + shellQuote(id) + " --source " + shellQuote(e.Source),
		Back:    p.eventPath(e.Source, id),
		Verb:    "Send again", Icon: "retry", Tone: "main",
		Fields: []field{{"source", e.Source}, {"id", string(holdfast.NewID())}},
		Inputs: []input{
			{Name: "subscription", Label: "Only to this subscription", Hint: "all that it was for", Value: r.FormValue("subscription")},
			{Name: "matchNow", Label: "to those that it matches now, instead", Kind: "tick"},
		},
	}), nil
}

func (p *Pages) resend(r *http.Request) (answer, error) {
	source, req := r.PostFormValue("source"), &api.ResendRequest{ID: r.PostFormValue("id"), Subscription: r.PostFormValue("subscription"), MatchNow: r.PostFormValue("matchNow") != ""}
	if _, err := (admin.Events{Service: p.Service}).Resend(r.Context(), source, r.PathValue("id"), "", req); err != nil {
		return nil, err
	}
	return redirect(withQuery(p.eventPath(source, r.PathValue("id")), "done", "sent")), nil
}

func (p *Pages) topics(r *http.Request) (answer, error) {
	all, err := admin.Topics{Service: p.Service}.List(r.Context())
	if err != nil {
		return nil, err
	}
	return &view{template: "topics", title: "Topics", rail: "Events", data: &all}, nil
}
