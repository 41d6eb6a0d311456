package web

import (
	"net/http"
	"strings"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

func (p *Pages) subscriptionPages() []page {
	return []page{
		{"GET subscriptions", "list-subscriptions", api.Read, false, p.subscriptions},
		{"GET subscriptions/{id}", "get-subscription", api.Read, false, p.subscription},
		{"GET subscriptions/{id}/pause", "ask-pause-subscription", api.Operate, false, p.askState("pause")},
		{"POST subscriptions/{id}/pause", "pause-subscription", api.Operate, false, p.setState},
		{"POST subscriptions/{id}/resume", "resume-subscription", api.Operate, false, p.setState},
		{"GET subscriptions/{id}/disable", "ask-disable-subscription", api.Operate, false, p.askState("disable")},
		{"POST subscriptions/{id}/disable", "disable-subscription", api.Operate, false, p.setState},
		{"GET subscriptions/{id}/rotate-secret", "ask-rotate-subscription-secret", api.Admin, false, p.askRotate},
		{"POST subscriptions/{id}/rotate-secret", "rotate-subscription-secret", api.Admin, false, p.rotate},
		{"POST subscriptions/{id}/test", "test-subscription", api.Operate, false, p.testSubscription},
	}
}

func (p *Pages) subscriptions(r *http.Request) (answer, error) {
	v := &view{template: "subscriptions", title: "Subscriptions", rail: "Subscriptions", live: true}
	all, err := admin.Subscriptions{Service: p.Service}.List(r.Context(), r.FormValue("after"), pageRows)
	v.data = &all
	if err != nil {
		return v.instead(err)
	}
	return v, nil
}

type subscribed struct {
	api.Subscription

	Filtered     string // the filter, in lines
	Actions      []action
	Waiting, Set string            // paths of its messages that wait, and of those that are parked
	Exchange     *api.TestExchange // of a test; nil: there was none
}

func (p *Pages) subscription(r *http.Request) (answer, error) {
	one, err := admin.Subscriptions{Service: p.Service}.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return p.subscriptionView(r, &one), nil
}

func (p *Pages) subscriptionView(r *http.Request, one *api.Subscription) *view {
	lane := "subscription:" + one.ID
	data := &subscribed{Subscription: *one, Filtered: indented(one.Filter), Waiting: p.list("destination", lane, "state", "pending"), Set: p.list("destination", lane, "state", "parked")}
	at := func(verb string) string { return p.link("subscriptions", one.ID, verb) }
	if one.State == "active" {
		data.Actions = append(data.Actions, asking(r, api.Operate, "Pause", "pause", "", at("pause")))
	} else {
		data.Actions = append(data.Actions, button(r, api.Operate, "Resume", "play", "main", at("resume")))
	}
	data.Actions = append(data.Actions, button(r, api.Operate, "Send test", "send", "", at("test")))
	if one.State != "disabled" {
		data.Actions = append(data.Actions, asking(r, api.Operate, "Disable", "stop", "danger", at("disable")))
	}
	data.Actions = append(data.Actions, asking(r, api.Admin, "New secret", "shield", "", at("rotate-secret")))
	return &view{template: "subscription", title: "Subscription " + one.ID, rail: "Subscriptions", data: data}
}

// askState asks before a subscription gets another state.
func (p *Pages) askState(verb string) func(r *http.Request) (answer, error) {
	return func(r *http.Request) (answer, error) {
		one, err := admin.Subscriptions{Service: p.Service}.Get(r.Context(), r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		a := question{
			Back: p.link("subscriptions", one.ID), Text: "Messages are stored and wait, until somebody resumes it.", Command: "holdfast subscriptions " + verb + " " + shellQuote(one.ID),
			Verb: upper(verb), Icon: "pause", Tone: "main", Inputs: []input{{Name: "reason", Label: "Reason, shown with the state", Hint: "ticket 4711"}},
		}
		if verb == "disable" {
			a.Text, a.Icon, a.Tone = "It gets no new events, and what waits for it stays. Events that come meanwhile are not for it.", "stop", "danger"
		}
		return p.askFirst(r, "Subscriptions", upper(verb)+" subscription "+one.ID, a), nil
	}
}

func (p *Pages) setState(r *http.Request) (answer, error) {
	all, id, req := admin.Subscriptions{Service: p.Service}, r.PathValue("id"), &api.StateChange{Reason: reasonOf(r)}
	verb := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	var err error
	switch verb {
	case "pause":
		_, err = all.Pause(r.Context(), id, req)
	case "resume":
		_, err = all.Resume(r.Context(), id, req)
	default:
		_, err = all.Disable(r.Context(), id, req)
	}
	if err != nil {
		return nil, err
	}
	return redirect(withQuery(p.link("subscriptions", id), "done", map[string]string{"pause": "paused", "resume": "resumed", "disable": "disabled"}[verb])), nil
}

func (p *Pages) askRotate(r *http.Request) (answer, error) {
	one, err := admin.Subscriptions{Service: p.Service}.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return p.askFirst(r, "Subscriptions", "New secret for subscription "+one.ID, question{
		Text:    "Requests are signed with a new secret, which the next page shows only once, and for the overlap also with the former ones, so that the receiver has time to change.",
		Back:    p.link("subscriptions", one.ID),
		Command: "holdfast subscriptions rotate-secret " + shellQuote(one.ID),
		Verb:    "Make a new secret", Icon: "shield", Tone: "main",
		Inputs: []input{{Name: "overlap", Label: "Overlap", Value: "24h", Hint: "24h; 0s: none", Required: true}},
	}), nil
}

func (p *Pages) rotate(r *http.Request) (answer, error) {
	id := r.PathValue("id")
	made, err := admin.Subscriptions{Service: p.Service}.RotateSecret(r.Context(), id, &api.SecretRotation{Overlap: r.PostFormValue("overlap")})
	if err != nil {
		return nil, err
	}
	s := &secret{Label: "Secret to verify requests with", Secret: made.Secret, Text: "Give it to whoever runs the receiver. The node keeps it sealed, and shows it to nobody again.", Back: p.link("subscriptions", id)}
	if made.Secret == "" {
		s.Label, s.Secret = "Public key to verify requests with", made.Public
	}
	return once{&view{template: "secret", title: "New secret of subscription " + id, rail: "Subscriptions", data: s}}, nil
}

// testSubscription calls the subscriber with an event that is not stored. The answer is a page with both.
func (p *Pages) testSubscription(r *http.Request) (answer, error) {
	all, id := admin.Subscriptions{Service: p.Service}, r.PathValue("id")
	one, err := all.Get(r.Context(), id)
	if err != nil {
		return nil, err
	}
	topic := "test"
	if len(one.Topics) > 0 && one.Topics[0] != "*" {
		topic = one.Topics[0]
	}
	done, err := all.Test(r.Context(), id, &api.NewEvent{Topic: topic, Data: []byte(`{"test":true}`)})
	if err != nil {
		return nil, err
	}
	v := p.subscriptionView(r, &one)
	if data, ok := v.data.(*subscribed); ok {
		data.Exchange = &done
	}
	return once{v}, nil
}
