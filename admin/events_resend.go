package admin

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

// Resend stores a new message for each subscription that gets an event again. key gives the id of the resend
// if the request does not.
func (s Events) Resend(ctx context.Context, source, event, key string, req *api.ResendRequest, wrong ...api.Fault) (out api.Resent, err error) {
	id, faults := idOf(req.ID, key)
	if faults = append(wrong, faults...); len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	find := s.find
	if isSubscriber(ctx) {
		find = func(ctx context.Context, source, event string) (fanout.Stored, error) {
			return s.findOwn(ctx, source, event, req)
		}
	}
	e, err := find(ctx, source, event)
	if err != nil {
		return out, err
	}
	r := fanout.Resend{ID: id, Subscription: req.Subscription, MatchNow: req.MatchNow, Actor: Actor(ctx)}
	if r.ID == "" {
		r.ID = holdfast.NewID() // an answer in doubt names it
	}
	done, err := s.Hub.Publisher.Resend(ctx, &e, r)
	switch {
	case errors.Is(err, fanout.ErrNobody):
		return out, api.WrongState.Problem(nobody(req, string(e.ID)))
	case errors.Is(err, holdfast.ErrConflict):
		return out, api.Conflict.Problem(fmt.Sprintf("resend %s is known, and asked for something else; take a new id for a new resend", api.Clip(string(r.ID))),
			api.Fault{Field: "id", Value: api.Clip(string(r.ID)), Problem: "belongs to another resend"})
	case err != nil:
		return out, inDoubt(s.refuse(ctx, "send the event again", err), err, r.ID)
	}
	out = api.Resent{ID: string(done.ID), Event: string(e.ID), Source: e.Source, Duplicate: done.Duplicate, Messages: make([]api.ResentMessage, len(done.Deliveries))}
	for i := range done.Deliveries {
		d := &done.Deliveries[i]
		out.Messages[i] = api.ResentMessage{Subscription: d.Subscription, Message: string(d.Message)}
	}
	return out, nil
}

// nobody says why a resend is for nobody.
func nobody(req *api.ResendRequest, event string) string {
	who, was := "no subscription", "was for it when it came"
	if req.Subscription != "" {
		who = fmt.Sprintf("subscription %s is not one that", api.Clip(req.Subscription))
	}
	if req.MatchNow {
		was = "matches it now"
	}
	return fmt.Sprintf("event %s was not sent again: %s %s, and is neither deleted nor disabled", api.Clip(event), who, was)
}

// checkResend reports the faults of a bulk action on events.
func (b Bulk) checkResend(req *api.BulkRequest) (faults []api.Fault) {
	f := &req.Filter
	for field, value := range map[string]string{
		"filter.status": strings.Join(f.Status, ","), "filter.destination": f.Destination, "filter.category": f.Category, "filter.channel": f.Channel, "filter.list": f.List,
		"filter.type": f.Type, "filter.site": f.Site, "filter.subject": f.Subject, "channel": req.Channel, "in": req.In, "at": req.At,
	} {
		if value != "" {
			faults = append(faults, api.Fault{Field: field, Value: api.Clip(value), Problem: "is not of events; leave it out"})
		}
	}
	if req.Verb != "resend" {
		faults = append(faults, api.Fault{Field: "verb", Value: api.Clip(req.Verb), Problem: "is not of events; write resend"})
	}
	if req.Force {
		faults = append(faults, api.Fault{Field: "force", Value: "true", Problem: "goes with retry of messages; leave it out"})
	}
	return append(faults, negative(req)...)
}

// events reads a page of the events of a window of time, the newest first. They were received in the order of
// their numbers, as long as the clock of the store was not set back.
func (b Bulk) events(ctx context.Context, req *api.BulkRequest, after string, s *snapshot) (next string, err error) {
	hub, p := b.fanOut()
	if p != nil {
		return "", p
	}
	from, faults := instantOf("from", req.Filter.From)
	to, more := instantOf("to", req.Filter.To)
	if faults = append(faults, more...); len(faults) > 0 {
		return "", api.Faulty(faults...)
	}
	before, p := position(after)
	if p != nil {
		return "", p
	}
	store := hub.Book.Store()
	if before == 0 && !to.IsZero() {
		if before, err = fanout.Before(ctx, store, req.Filter.Topic, to); err != nil {
			return "", b.refuse(ctx, "list events", err)
		}
	}
	list, err := store.Events(ctx, fanout.Query{Topic: req.Filter.Topic, Before: before, Limit: snapshotPage})
	if err != nil {
		return "", b.refuse(ctx, "list events", err)
	}
	for i := range list {
		e := &list[i]
		if e.Received.Before(from) {
			return "", nil
		}
		s.add(e.Source+" "+string(e.ID), e.Topic, "received")
	}
	if len(list) < snapshotPage {
		return "", nil
	}
	return strconv.FormatInt(list[len(list)-1].Seq, 10), nil
}

// event sends the event of a row again. The id of the resend is made of the row: a row that is done again after
// a crash finds its resend, and makes no second one.
func (b Bulk) event(ctx context.Context, action string, req *api.BulkRequest, item string) error {
	source, id, _ := strings.Cut(item, " ")
	_, err := Events(b).Resend(ctx, source, id, "", &api.ResendRequest{
		ID: fmt.Sprintf("%s-%x", action, sha256.Sum256([]byte(item))), Subscription: req.Subscription, MatchNow: req.MatchNow,
	})
	return err
}
