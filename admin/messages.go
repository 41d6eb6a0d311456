package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/search"
)

// Messages offers the messages of an outbox: the node's own, or a site's (Sites.At).
type Messages struct {
	*Service
	there holdfast.Outbox // the outbox of a site; nil: the node's own
	site  string          // whose outbox there is
}

// object is what a scope is asked about a message to this destination.
func (m Messages) object(destination string) api.Object {
	o := m.here(destination)
	if m.there != nil {
		o.Site = m.site
	}
	return o
}

func (m Messages) outbox() holdfast.Outbox {
	if m.there != nil {
		return m.there
	}
	return m.Outbox
}

// show returns a message as lists show it. A site's message keeps the category that its destination has at
// the site: this node may have another destination of the same name.
func (m Messages) show(r *holdfast.Record) api.Message {
	out := m.messageOf(r)
	if m.there != nil {
		out.Category = string(r.Category)
	}
	return out
}

// MessageQuery narrows a list of messages. Zero fields do not narrow.
type MessageQuery struct {
	States      []string // each entry holds one or several, separated by commas
	Destination string
	Category    string // excludes Destination; a site's messages have none
	Held        bool
	MessageFilter
	Count int    // also count what is found, up to so many; zero: do not
	After string // MessagePage.Next of the previous page
	Limit int    // zero: the store's default
}

// List returns a page, newest first. If the category or the caller's scope narrows it to some destinations, it
// is the newest first of each of them.
func (m Messages) List(ctx context.Context, of *MessageQuery) (page api.MessagePage, err error) {
	q, p := m.query(of)
	if p != nil {
		return page, p
	}
	names, narrowed, p := m.narrow(ctx, of)
	if p != nil {
		return page, p
	}
	if of.Count > 0 && (m.there != nil || q.Held || isSubscriber(ctx)) {
		return page, api.Unsupported.Problem("held messages, those of a site and those of a subscriber are not counted; leave count out")
	}
	if found, known, err := m.whole(ctx, &q, of, names, narrowed); known || err != nil {
		return found, err
	}
	read := func(q holdfast.Query) (found holdfast.Page, err error) {
		has, err := m.own(ctx, &q)
		if has && err == nil {
			found, err = m.outbox().List(ctx, q)
		}
		if err != nil {
			return found, m.refuse(ctx, "list messages", err)
		}
		return found, nil
	}
	var found holdfast.Page
	if narrowed {
		found.Records, found.Next, err = pageOver(names, of.After, of.Limit, func(name, after string, limit int) ([]holdfast.Record, string, error) {
			q.Destination, q.After, q.Limit = name, after, limit
			one, err := read(q)
			return one.Records, one.Next, err
		})
	} else {
		found, err = read(q)
	}
	if err != nil {
		return page, err
	}
	if !Granted(ctx).Whole() { // the time may be that of somebody else's message
		found.LookedUntil = time.Time{}
	}
	page = m.pageOf(found)
	if of.Count > 0 {
		page.Count, err = m.count(ctx, q, of.Count, names, narrowed)
	}
	return page, err
}

// count counts the messages of a list, up to so many.
func (m Messages) count(ctx context.Context, q holdfast.Query, most int, names []string, narrowed bool) (*api.Count, error) {
	if !narrowed {
		names = []string{q.Destination}
	}
	n := &api.Count{}
	for bound := search.Begin(); len(names) > 0 && !n.More; names = names[1:] {
		q.Destination, q.After, q.Count = names[0], "", most-n.Count
		found, err := m.outbox().List(ctx, q)
		if err != nil {
			return nil, m.refuse(ctx, "count messages", err)
		}
		n.Count += found.Count
		n.More = found.Next != "" || len(names) > 1 && (n.Count == most || bound.Over(found.Count))
	}
	return n, nil
}

// query returns what the store is asked.
func (m Messages) query(of *MessageQuery) (q holdfast.Query, p *api.Problem) {
	states, faults := statesOf(of.States)
	q = holdfast.Query{States: states, Destination: of.Destination, Held: of.Held, Limit: of.Limit, After: of.After}
	switch faults = append(faults, of.put(&q)...); {
	case len(faults) > 0:
		return q, api.Faulty(faults...)
	case m.there != nil && q.Searches():
		return q, api.Unsupported.Problem("a site's messages are found by state and destination only")
	}
	return q, nil
}

// narrow returns the destinations that a list is about, unless it is about all: those that the query names, as
// far as the caller's scope has them.
func (m Messages) narrow(ctx context.Context, of *MessageQuery) (names []string, narrowed bool, p *api.Problem) {
	scope := Granted(ctx).Scope
	if o := m.object(""); !scope.AtSite(o.Site) {
		return nil, false, outside("site", o.Site)
	}
	switch {
	case of.Category != "" && m.there != nil:
		return nil, false, api.Unsupported.Problem("the categories of a site's destinations are known at the site; name a destination, or none")
	case of.Category != "" && of.Destination != "":
		return nil, false, api.Faulty(api.Fault{Field: "category", Value: api.Clip(of.Category), Problem: "excludes destination, which has one category; leave one of them out"})
	case of.Category != "":
		var faults []api.Fault
		if names, faults = m.inCategory(of.Category); len(faults) > 0 {
			return nil, false, api.Faulty(faults...)
		}
		return slices.DeleteFunc(names, func(d string) bool { return !scope.Has(m.object(d)) }), true, nil
	case of.Destination == "":
		return scope.Destinations, len(scope.Destinations) > 0, nil
	case !scope.Has(m.object(of.Destination)):
		return nil, false, outside("destination", of.Destination)
	}
	return nil, false, nil
}

// Get returns one message with everything that is known about it.
func (m Messages) Get(ctx context.Context, text string) (d api.MessageDetail, err error) {
	id, p := parseID(text)
	if p != nil {
		return d, p
	}
	r, err := m.get(ctx, id)
	if err != nil {
		return d, m.missing(ctx, "read the message", id, err)
	}
	d = m.detailOf(ctx, &r)
	for i := range d.History {
		d.History[i].Actor = someone(ctx, d.History[i].Actor)
	}
	return d, nil
}

// get reads a message. To a caller whose scope does not have it, it is not kept: an answer must not tell which
// ids there are.
func (m Messages) get(ctx context.Context, id holdfast.ID) (holdfast.Record, error) {
	r, err := m.outbox().Get(ctx, id)
	if err == nil && !within(ctx, m.object(r.Message.Destination)) {
		return holdfast.Record{}, holdfast.ErrNotFound
	}
	if err == nil && isSubscriber(ctx) {
		var former bool
		if former, err = m.ofFormer(ctx, &r, true); former {
			return holdfast.Record{}, holdfast.ErrNotFound
		}
	}
	return r, err
}

// statesOf reads state=parked,expired and state=parked&state=expired.
func statesOf(params []string) (states []holdfast.State, faults []api.Fault) {
	for _, param := range params {
		for name := range strings.SplitSeq(param, ",") {
			state, err := holdfast.ParseState(strings.TrimSpace(name))
			if err != nil {
				faults = append(faults, api.FaultsOf(err)...)
				continue
			}
			states = append(states, state)
		}
	}
	return states, faults
}
