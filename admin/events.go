package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

// Events offers what programs publish.
type Events struct{ *Service }

func eventFrom(ctx context.Context, req *api.NewEvent) fanout.Event {
	e := fanout.Event{
		ID: holdfast.ID(req.ID), Source: req.Source, Topic: req.Topic, Type: req.Type, Subject: req.Subject, Attributes: req.Attributes, Data: req.Data, Actor: Actor(ctx),
	}
	if req.Time != nil {
		e.Time = *req.Time
	}
	if len(e.Data) == 0 {
		e.Data = []byte("null")
	}
	return e
}

// Publish stores an event with its messages. key gives the id if the request does not.
func (s Events) Publish(ctx context.Context, req *api.NewEvent, key string, wrong ...api.Fault) (out api.EventAccepted, err error) {
	hub, p := s.fanOut()
	if p != nil {
		return out, p
	}
	id, faults := idOf(req.ID, key)
	e := eventFrom(ctx, req)
	e.ID = id
	if size := int64(len(e.Data)); size > s.LargestPayload() {
		return out, api.TooLong(fmt.Sprint(size), s.LargestPayload())
	}
	if faults = slices.Concat(wrong, faults); len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	if !s.sees(ctx, e.Topic, "") {
		return out, outside("topic", e.Topic)
	}
	if e.ID == "" {
		e.ID = holdfast.NewID() // an answer in doubt names it
	}
	done, err := hub.Publisher.Publish(ctx, e)
	switch {
	case errors.Is(err, holdfast.ErrConflict):
		return out, api.Conflict.Problem(fmt.Sprintf("event %s is known with other content; take a new id for a new event", api.Clip(string(e.ID))),
			api.Fault{Field: "id", Value: api.Clip(string(e.ID)), Problem: "belongs to an event with other content"})
	case errors.Is(err, holdfast.ErrNotFound):
		return out, api.Faulty(api.Fault{Field: "topic", Value: api.Clip(e.Topic), Problem: "is not the name of a topic: PUT /v1/topics/NAME makes one"})
	case err != nil:
		return out, inDoubt(s.refuse(ctx, "store the event", err), err, e.ID)
	}
	return api.EventAccepted{ID: string(done.ID), Source: done.Source, Accepted: true, Durability: s.durability(), Duplicate: done.Duplicate, Matched: done.Matched}, nil
}

func storedOf(e *fanout.Stored) api.StoredEvent {
	return api.StoredEvent{
		ID: string(e.ID), Source: e.Source, Topic: e.Topic, Type: e.Type, Subject: e.Subject, Time: e.Time, Attributes: e.Attributes, ContentType: e.ContentType, Actor: e.Actor,
		Received: e.Received.UTC(), Matched: e.Matched,
	}
}

// List returns a page of events, newest first.
func (s Events) List(ctx context.Context, topic, after string, limit int) (out api.EventPage, err error) {
	hub, p := s.fanOut()
	if p != nil {
		return out, p
	}
	if !s.sees(ctx, topic, "") {
		return out, outside("topic", topic)
	}
	before, p := position(after)
	if p != nil {
		return out, p
	}
	limit = cmp.Or(limit, usualPage)
	list, err := hub.Book.Store().Events(ctx, fanout.Query{Topic: topic, Before: before, Limit: limit})
	if err != nil {
		return out, s.refuse(ctx, "list events", err)
	}
	out.Events = make([]api.StoredEvent, len(list))
	for i := range list {
		out.Events[i] = storedOf(&list[i])
	}
	if len(list) == limit {
		out.Next = strconv.FormatInt(list[len(list)-1].Seq, 10)
	}
	return out, nil
}

// position reads a place in a list; zero: the beginning.
func position(after string) (int64, *api.Problem) {
	if after == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(after, 10, 64)
	if err != nil || n <= 0 {
		return 0, api.Faulty(api.Fault{Field: "after", Value: api.Clip(after), Problem: "is not a position in this list; use next of the previous page unchanged"})
	}
	return n, nil
}

// find returns the event with an id. source may be empty if only one source has sent the id.
func (s Events) find(ctx context.Context, source, text string) (e fanout.Stored, err error) {
	return s.pick(ctx, source, text, func(e *fanout.Stored) (bool, error) { return s.sees(ctx, e.Topic, ""), nil })
}

// pick is find among the events that the caller may see.
func (s Events) pick(ctx context.Context, source, text string, sees func(e *fanout.Stored) (bool, error)) (e fanout.Stored, err error) {
	hub, p := s.fanOut()
	if p != nil {
		return e, p
	}
	id, p := parseID(text)
	if p != nil {
		return e, p
	}
	list, err := hub.Book.Store().EventsOf(ctx, id)
	if err != nil {
		return e, s.refuse(ctx, "read the event", err)
	}
	var found []fanout.Stored
	for i := range list {
		if source != "" && list[i].Source != source {
			continue
		}
		if seen, err := sees(&list[i]); err != nil {
			return e, s.refuse(ctx, "read the event", err)
		} else if seen {
			found = append(found, list[i])
		}
	}
	switch len(found) {
	case 0:
		return e, api.NotFound.Problem(fmt.Sprintf("no event %s is kept here; it never was, or its retention is over", api.Clip(text)),
			api.Fault{Field: "id", Value: api.Clip(text), Problem: "is not kept here"})
	case 1:
		return found[0], nil
	}
	return e, api.Faulty(api.Fault{Field: "source", Problem: fmt.Sprintf("is missing: %d sources have sent this id, such as %s and %s", len(found), found[0].Source, found[1].Source)})
}

// mostDeliveries is how many deliveries of an event are shown at once.
const mostDeliveries = 200

// Get returns an event with its data and what became of it, from the delivery behind after on.
func (s Events) Get(ctx context.Context, source, id, after string) (out api.EventDetail, err error) {
	e, err := s.find(ctx, source, id)
	if err != nil {
		return out, err
	}
	from, p := position(after)
	if p != nil {
		return out, p
	}
	data, err := s.Hub.Book.Store().Data(ctx, e.Seq)
	if err != nil {
		return out, s.refuse(ctx, "read the event", err)
	}
	list, err := s.Hub.Book.Store().Deliveries(ctx, e.Seq, from, mostDeliveries)
	if err != nil {
		return out, s.refuse(ctx, "read the deliveries of the event", err)
	}
	out = api.EventDetail{StoredEvent: storedOf(&e), Data: data, Deliveries: make([]api.EventDelivery, 0, len(list))}
	for i := range list {
		if shown, err := s.shown(ctx, &list[i]); err != nil {
			return out, err
		} else if !shown {
			continue
		}
		d, err := s.delivery(ctx, &list[i])
		if err != nil {
			return out, err
		}
		out.Deliveries = append(out.Deliveries, d)
	}
	if len(list) == mostDeliveries {
		out.Next = strconv.FormatInt(list[len(list)-1].Seq, 10)
	}
	return out, nil
}

// shown reports whether the caller's scope has the subscription of a delivery, as it was when the event came.
// What that subscriber answered is not for others.
func (s Events) shown(ctx context.Context, d *fanout.Delivery) (bool, error) {
	if Granted(ctx).Whole() {
		return true, nil
	}
	one, err := s.Hub.Book.Store().SubscriptionAt(ctx, d.Subscription, d.Version)
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, s.refuse(ctx, "read a subscription of the event", err)
	}
	return Subscriptions(s).visible(ctx, &one), nil
}

// delivery tells how one delivery stands.
func (s Events) delivery(ctx context.Context, d *fanout.Delivery) (out api.EventDelivery, err error) {
	out = api.EventDelivery{Subscription: d.Subscription, Message: string(d.Message), State: d.State.String(), Settled: instant(d.Settled), Purged: d.Purged, Resend: string(d.Request), Actor: d.Actor}
	if d.Purged {
		return out, nil
	}
	r, err := s.Outbox.Get(ctx, d.Message)
	if errors.Is(err, holdfast.ErrNotFound) { // purged since
		out.State = "unknown"
		return out, nil
	}
	if err != nil {
		return out, s.refuse(ctx, "read a message of the event", err)
	}
	out.State, out.Attempts, out.LastError, out.WaitsFor, out.Settled = r.State.String(), r.Tries, r.LastError, s.waitsFor(ctx, &r), instant(r.Settled)
	if r.State == holdfast.Pending {
		out.Next = instant(r.Due)
	}
	return out, nil
}

// Explain says of a page of subscriptions why each got an event or not.
func (s Events) Explain(ctx context.Context, source, id, after string, limit int) (out api.EventExplanation, err error) {
	e, err := s.find(ctx, source, id)
	if err != nil {
		return out, err
	}
	limit = cmp.Or(limit, usualPage)
	list, err := s.Hub.Book.Explain(ctx, &e, after, limit)
	if err != nil {
		return out, s.refuse(ctx, "explain the event", err)
	}
	got, err := s.deliveriesTo(ctx, e.Seq, list)
	if err != nil {
		return out, err
	}
	out = api.EventExplanation{Event: storedOf(&e), Subscriptions: []api.ExplainedSubscription{}}
	for i := range list {
		x := &list[i]
		if Subscriptions(s).visible(ctx, &x.Subscription) {
			out.Subscriptions = append(out.Subscriptions, api.ExplainedSubscription{
				ID: x.Subscription.ID, URL: x.Subscription.URL, State: x.Subscription.State.String(), Matched: x.Matched, Why: x.Why, Delivery: got[x.Subscription.ID],
			})
		}
	}
	if len(list) == limit {
		out.Next = list[limit-1].Subscription.ID
	}
	return out, nil
}

// deliveriesTo returns how the deliveries to a page of subscriptions stand, by subscription.
func (s Events) deliveriesTo(ctx context.Context, event int64, to []fanout.Explanation) (map[string]*api.EventDelivery, error) {
	got := map[string]*api.EventDelivery{}
	if len(to) == 0 {
		return got, nil
	}
	list, err := s.Hub.Book.Store().DeliveriesTo(ctx, event, to[0].Subscription.ID, to[len(to)-1].Subscription.ID)
	if err != nil {
		return nil, s.refuse(ctx, "read the deliveries of the event", err)
	}
	for i := range list {
		if id := list[i].Subscription; got[id] == nil {
			d, err := s.delivery(ctx, &list[i])
			if err != nil {
				return nil, err
			}
			got[id] = &d
		}
	}
	return got, nil
}
