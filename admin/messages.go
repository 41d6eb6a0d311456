package admin

import (
	"context"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// Messages offers the messages of an outbox: the node's own, or a site's (Sites.At).
type Messages struct {
	*Service
	there holdfast.Outbox // the outbox of a site; nil: the node's own
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
	After       string // MessagePage.Next of the previous page
	Limit       int    // zero: the store's default
}

// List returns a page, newest first.
func (m Messages) List(ctx context.Context, of *MessageQuery) (page api.MessagePage, err error) {
	states, faults := statesOf(of.States)
	if len(faults) > 0 {
		return page, api.Faulty(faults...)
	}
	q := holdfast.Query{States: states, Destination: of.Destination, Held: of.Held, Limit: of.Limit, After: of.After}
	if of.Category == "" {
		found, err := m.outbox().List(ctx, q)
		if err != nil {
			return page, m.refuse(ctx, "list messages", err)
		}
		return m.pageOf(found), nil
	}
	if m.there != nil {
		return page, api.Unsupported.Problem("the categories of a site's destinations are known at the site; name a destination, or none")
	}
	if of.Destination != "" {
		return page, api.Faulty(api.Fault{Field: "category", Value: api.Clip(of.Category), Problem: "excludes destination, which has one category; leave one of them out"})
	}
	names, faults := m.inCategory(of.Category)
	if len(faults) > 0 {
		return page, api.Faulty(faults...)
	}
	return m.pageOfCategory(ctx, q, names)
}

// Get returns one message with everything that is known about it.
func (m Messages) Get(ctx context.Context, text string) (d api.MessageDetail, err error) {
	id, p := parseID(text)
	if p != nil {
		return d, p
	}
	r, err := m.outbox().Get(ctx, id)
	if err != nil {
		return d, m.missing(ctx, "read the message", id, err)
	}
	return m.detailOf(&r), nil
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
