package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// messageList is what the list of messages shows.
type messageList struct {
	State, Destination, Category string // the filters
	Held                         bool
	Filter                       admin.MessageFilter
	Narrowed                     bool       // by a filter
	LookedUntil                  *time.Time // how far a search has got, which goes on with Next; nil: it is through
	Bulk                         []action

	States, Destinations, Categories []string // to choose from
	Rows                             []row
	Next                             string // path of the next page; empty: there is none
	First                            string // path of the first page; empty: this is it
}

// row is a message in a list.
type row struct {
	api.Message

	Shown string // its state as people read it
	Late  string // what it said last, or why it was set aside
}

// Rows on a page.
const (
	usualRows = 50
	mostRows  = 100
)

func (p *Pages) messages(r *http.Request) (answer, error) {
	q := r.URL.Query()
	list := &messageList{
		State: q.Get("state"), Destination: q.Get("destination"), Category: q.Get("category"), Held: q.Get("held") != "",
		States: stateNames(), Categories: []string{"external-system", "cached-db-write", "notification"},
	}
	for _, d := range (admin.Destinations{Service: p.Service}).List(r.Context()).Destinations {
		list.Destinations = append(list.Destinations, d.Name)
	}
	v := &view{template: "messages", title: "Messages", rail: "Messages", live: true, data: list}
	limit := usualRows
	if n, err := strconv.Atoi(q.Get("limit")); err == nil {
		limit = min(max(n, 1), mostRows)
	}
	of := admin.MessageQuery{Destination: list.Destination, Category: list.Category, Held: list.Held, After: q.Get("after"), Limit: limit}
	of.MessageFilter = messageFilter(q)
	list.Filter, list.Narrowed = of.MessageFilter, narrowed(q)
	if of.ID+of.Endpoint+of.Key+of.Correlation+of.Grep == "" && !of.Held { // a bulk action has no such filter
		list.Bulk = p.bulkActions(r, "messages", q, []string{"state", "destination", "category", "cause", "code", "error", "from", "to"})
	}
	if list.State != "" {
		of.States = []string{list.State}
	}
	page, err := admin.Messages{Service: p.Service}.List(r.Context(), &of)
	if err != nil {
		why := problemOf(err)
		v.status, v.said = why.Status, refused(err)
		return v, err
	}
	if !page.LookedUntil.IsZero() {
		list.LookedUntil = &page.LookedUntil
	}
	for i := range page.Messages {
		list.Rows = append(list.Rows, rowOf(&page.Messages[i]))
	}
	first := *r.URL
	q.Del("after")
	if of.After != "" {
		first.RawQuery = q.Encode()
		list.First = p.at(&first)
	}
	if page.Next != "" {
		q.Set("after", page.Next)
		first.RawQuery = q.Encode()
		list.Next = p.at(&first)
	}
	return v, nil
}

// at returns the path of a request as links write it.
func (p *Pages) at(u *url.URL) string {
	if u.RawQuery == "" {
		return p.Base + u.EscapedPath()
	}
	return p.Base + u.EscapedPath() + "?" + u.RawQuery
}

func stateNames() []string {
	return []string{
		holdfast.Pending.String(), holdfast.Claimed.String(), holdfast.Delivered.String(), holdfast.Parked.String(), holdfast.Expired.String(), holdfast.Discarded.String(),
	}
}

func rowOf(m *api.Message) row {
	r := row{Message: *m, Shown: shownState(m), Late: m.LastError}
	if m.State == holdfast.Delivered.String() {
		r.Late = ""
	}
	return r
}

// shownState is the state of a message as people read it: one that has failed and waits is retrying.
func shownState(m *api.Message) string {
	switch {
	case m.Discarding:
		return "discarding"
	case m.HeldUntil != nil:
		return "held"
	case m.State == holdfast.Pending.String() && m.Tries > 0:
		return "retrying"
	}
	return m.State
}

// selected is what is asked before selected messages are discarded, and what came of it.
type selected struct {
	IDs     []string
	Verb    string
	Done    int
	Skipped []skipped
	Next    string // the way back
}

type skipped struct{ ID, Why string }

// decideSelected retries or discards the rows that are selected, one by one: the store refuses each whose state
// does not allow it any more.
func (p *Pages) decideSelected(r *http.Request) (answer, error) {
	s := &selected{IDs: r.PostForm["id"], Verb: r.PostFormValue("verb"), Next: p.local(r.PostFormValue("next"))}
	reason := reasonOf(r)
	switch {
	case len(s.IDs) == 0:
		return nil, api.Faulty(api.Fault{Field: "id", Problem: "is missing: select at least one row"})
	case len(s.IDs) > mostRows:
		return nil, api.Faulty(api.Fault{Field: "id", Problem: "is given too often: a page has at most 100 rows"})
	case !slices.Contains([]string{"retry", "discard"}, s.Verb):
		return nil, api.Faulty(api.Fault{Field: "verb", Value: api.Clip(s.Verb), Problem: "must be retry or discard"})
	case s.Verb == "discard" && r.PostFormValue("sure") == "":
		return &view{template: "discard", title: "Discard", rail: "Messages", data: s}, nil
	case s.Verb == "discard" && reason == "":
		return &view{status: http.StatusUnprocessableEntity, template: "discard", title: "Discard", rail: "Messages", data: s, said: refused(noReason())}, noReason()
	}
	of := admin.Messages{Service: p.Service}
	for _, id := range s.IDs {
		var err error
		if s.Verb == "retry" {
			_, err = of.Retry(r.Context(), id, &api.RetryRequest{})
		} else {
			_, err = of.Discard(r.Context(), id)
		}
		if err != nil {
			s.Skipped = append(s.Skipped, skipped{id, problemOf(err).Detail})
			continue
		}
		s.Done++
	}
	t := told{with: []any{"verb", s.Verb, "reason", api.Clip(reason), "done", s.Done, "skipped", len(s.Skipped), "ids", s.IDs[:min(len(s.IDs), 20)]}}
	if len(s.Skipped) > 0 {
		t.answer = &view{template: "selected", title: "Selected messages", rail: "Messages", data: s}
		return t, nil
	}
	t.answer = redirect(withQuery(s.Next, "done", pastOf(s.Verb), "rows", strconv.Itoa(s.Done)))
	return t, nil
}

// reasonOf returns the reason that a form gives. Blanks are none.
func reasonOf(r *http.Request) string { return strings.TrimSpace(r.PostFormValue("reason")) }

func noReason() error {
	return api.Faulty(api.Fault{Field: "reason", Problem: "is missing: say why, for who reads the audit log"})
}

func pastOf(verb string) string {
	return map[string]string{"retry": "retried", "discard": "discarded", "run": "run", "reschedule": "rescheduled", "pause": "paused", "resume": "resumed"}[verb]
}

// withQuery adds parameters to a path of ours.
func withQuery(path string, pairs ...string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path
	}
	q := u.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}
