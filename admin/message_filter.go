package admin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

// MessageFilter is what a list of messages is searched for. Zero fields do not narrow. Times are RFC 3339, or a
// day in UTC.
type MessageFilter struct {
	ID          string // a part of the id, or a whole UUID in any form
	Endpoint    string
	Key         string // the ordering key
	Correlation string
	Event       string // id of the event that a delivery is of
	Topic       string // of that event
	From        string // time of acceptance, from
	To          string // time of acceptance, before
	Code        string // of the last error
	Error       string // words of the last error
	Grep        string // words of the headers and of the beginning of the payload
	Cause       string // api.Cause.ID
}

// put puts the filter into a query, and reports what it cannot read.
func (f *MessageFilter) put(q *holdfast.Query) (faults []api.Fault) {
	for name, value := range map[string]string{
		"id": f.ID, "endpoint": f.Endpoint, "key": f.Key, "correlation": f.Correlation, "event": f.Event, "topic": f.Topic,
		"code": f.Code, "error": f.Error, "grep": f.Grep, "cause": f.Cause,
	} {
		faults = append(faults, checkLine(name, value, mostText)...)
	}
	var wrong [2][]api.Fault
	q.Since, wrong[0] = instantOf("from", f.From)
	q.Until, wrong[1] = instantOf("to", f.To)
	id, about := strings.ToLower(f.ID), wordsOf(f.Error)
	if whole, err := holdfast.ParseID(f.ID); err == nil {
		id = strings.ToLower(string(whole))
	}
	same := func(want, is string) bool { return want == "" || want == is }
	if *f != (MessageFilter{From: f.From, To: f.To, Grep: f.Grep}) {
		q.Match = func(r *holdfast.Record) bool {
			m := &r.Message
			return same(f.Endpoint, m.Endpoint) && same(f.Key, m.OrderingKey) && same(f.Correlation, m.CorrelationID) &&
				same(f.Event, m.Headers[fanout.EventIDHeader]) && same(f.Topic, m.Headers["ce-topic"]) && same(f.Code, r.LastCode) &&
				strings.Contains(strings.ToLower(string(m.ID)), id) && about.in(r.LastError) &&
				(f.Cause == "" || f.Cause == causeOf(m.Destination, r.LastCode, r.LastError))
		}
	}
	if text := wordsOf(f.Grep); len(text) > 0 {
		q.Text = func(r *holdfast.Record, payload []byte) bool {
			return text.in(append(slices.Collect(maps.Values(ownHeaders(r.Message.Headers))), string(payload))...)
		}
	}
	return slices.Concat(faults, wrong[0], wrong[1])
}

// words must all be in a text, in any case.
type words []string

func wordsOf(text string) words { return strings.Fields(strings.ToLower(text)) }

func (w words) in(texts ...string) bool {
	if len(w) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join(texts, "\n"))
	return !slices.ContainsFunc(w, func(word string) bool { return !strings.Contains(text, word) })
}

// whole returns the message that has the whole id of the query, if there is one and the rest selects it. known
// says that there is nothing to search for.
func (m Messages) whole(ctx context.Context, q *holdfast.Query, of *MessageQuery, names []string, narrowed bool) (page api.MessagePage, known bool, err error) {
	id, bad := holdfast.ParseID(of.ID)
	if of.ID == "" || bad != nil {
		return page, false, nil //nolint:nilerr // what is no id is a part of one
	}
	r, err := m.get(ctx, id)
	page.Messages = []api.Message{}
	if of.Count > 0 {
		page.Count = &api.Count{}
	}
	switch _, uuid := id.UUID(); {
	case errors.Is(err, holdfast.ErrNotFound):
		return page, uuid, nil
	case err != nil:
		return page, true, m.refuse(ctx, "look for the message", err)
	}
	if (len(q.States) == 0 || slices.Contains(q.States, r.State)) && (q.Destination == "" || q.Destination == r.Message.Destination) &&
		(!narrowed || slices.Contains(names, r.Message.Destination)) &&
		(!q.Held || !r.HeldUntil.IsZero()) && q.Selects(&r) && (q.Text == nil || q.Text(&r, r.Message.Payload[:min(len(r.Message.Payload), holdfast.SearchedBytes)])) {
		page.Messages = append(page.Messages, m.show(&r))
		if page.Count != nil {
			page.Count.Count = 1
		}
	}
	return page, true, nil
}
