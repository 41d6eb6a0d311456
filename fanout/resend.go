package fanout

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// ResendKind is the Kind of the bundle of a resend.
const ResendKind = "resend"

// HeaderID is the header of a message that is sent again: the id under which its subscriber knows the first one.
const HeaderID = "webhook-id"

// Resend asks to send an event again.
type Resend struct {
	ID           holdfast.ID // its idempotency key within the source of the event; empty: Resend mints one
	Subscription string      // only to this one; empty: to all
	MatchNow     bool        // to those that it is for now; false: to those that it was for when it came
	Actor        string      // who asks
}

// Resent is what became of a resend.
type Resent struct {
	ID         holdfast.ID
	Deliveries []Delivery // in no state; purged ones of a Duplicate have theirs
	Duplicate  bool       // it was stored before
}

// ErrNobody is wrapped when a resend is for no subscription.
var ErrNobody = errors.New("no subscription gets the event")

// Resend stores a new message for each subscription that gets the event again, and changes nothing of
// those before. Its subscriber knows it by the id of the first one. A subscription that is deleted or
// disabled gets nothing. Resend returns when that is on disk. A resend that is known by its id is answered
// as it was at first, as long as the event is kept; one that asks for something else is ErrConflict.
// ErrNobody: nothing was stored.
func (p *Publisher) Resend(ctx context.Context, e *Stored, r Resend) (done Resent, err error) {
	if r.ID == "" {
		r.ID = holdfast.NewID()
	}
	r.ID, err = holdfast.ParseID(string(r.ID))
	if err = invalid(err); err == nil {
		done, err = p.resend(ctx, e, &r)
	}
	if err != nil {
		return Resent{}, fmt.Errorf("resend event %s: %w", e.ID, err)
	}
	return done, nil
}

func (p *Publisher) resend(ctx context.Context, e *Stored, r *Resend) (done Resent, err error) {
	before, err := p.deliveries(ctx, e.Seq)
	if err != nil {
		return done, err
	}
	if e.Data == nil {
		if e.Data, err = p.Book.store.Data(ctx, e.Seq); err != nil {
			return done, err
		}
	}
	to, err := p.again(ctx, e, r, before)
	if err != nil {
		return done, err
	}
	if len(to) == 0 {
		if done.Deliveries = of(before, r.ID); len(done.Deliveries) == 0 {
			return done, ErrNobody
		}
	}
	if len(done.Deliveries) == 0 {
		if done, err = p.storeResend(ctx, e, r, to, before); err != nil || !done.Duplicate {
			return done, err
		}
		if before, err = p.deliveries(ctx, e.Seq); err != nil {
			return done, err
		}
	}
	return Resent{ID: r.ID, Deliveries: of(before, r.ID), Duplicate: true}, nil
}

// of returns the deliveries of a resend.
func of(list []Delivery, id holdfast.ID) (some []Delivery) {
	for i := range list {
		if list[i].Request == id {
			some = append(some, list[i])
		}
	}
	return some
}

// deliveries returns all deliveries of an event.
func (p *Publisher) deliveries(ctx context.Context, event int64) (all []Delivery, err error) {
	for after := int64(0); ; after = all[len(all)-1].Seq {
		some, err := p.Book.store.Deliveries(ctx, event, after, page)
		if all = append(all, some...); err != nil || len(some) < page {
			return all, err
		}
	}
}

// again returns the subscriptions that get the event again.
func (p *Publisher) again(ctx context.Context, e *Stored, r *Resend, before []Delivery) (to []match, err error) {
	var candidates []match
	if r.MatchNow {
		if candidates, _, err = p.Book.match(ctx, e.asked(), nil); err != nil {
			return nil, err
		}
	} else {
		for i := range before {
			if before[i].Request == "" {
				candidates = append(candidates, match{id: before[i].Subscription})
			}
		}
	}
	for _, c := range candidates {
		if r.Subscription != "" && c.id != r.Subscription {
			continue
		}
		s, found, err := p.Book.Subscription(ctx, c.id)
		if err != nil {
			return nil, err
		}
		if found && s.State != Disabled {
			to = append(to, match{s.ID, s.Version})
		}
	}
	return to, nil
}

// storeResend stores the messages of a resend. All are of one commit, so a crash leaves all or none.
func (p *Publisher) storeResend(ctx context.Context, e *Stored, r *Resend, to []match, before []Delivery) (done Resent, err error) {
	first := make(map[string]holdfast.ID, len(before))
	for i := range before {
		if d := &before[i]; first[d.Subscription] == "" {
			first[d.Subscription] = d.Message
		}
	}
	b := holdfast.Bundle{
		Kind: ResendKind, Source: e.Source, ID: r.ID, Hash: r.hash(e), Payload: e.Data,
		Messages: make([]holdfast.Message, len(to)), Rows: make([]holdfast.Row, len(to)),
	}
	done = Resent{ID: r.ID, Deliveries: make([]Delivery, len(to))}
	for i, m := range to {
		id := holdfast.NewID()
		headers := e.headers()
		if known := first[m.id]; known != "" { // else it never got the event
			headers[HeaderID] = string(known)
		}
		b.Messages[i] = holdfast.Message{ID: id, Destination: Lane(m.id), Endpoint: e.endpoint(), Headers: headers}
		b.Rows[i] = &rows.Delivery{
			Subscription: m.id, Version: m.version, Message: string(id), Settled: rows.None, Resends: e.Seq, Request: string(r.ID), Actor: r.Actor,
		}
		done.Deliveries[i] = Delivery{Subscription: m.id, Version: m.version, Message: id, Request: r.ID, Actor: r.Actor}
	}
	results, err := p.Bundles.Bundle(ctx, b)
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return Resent{}, err
	}
	done.Duplicate = results[0].Receipt.Duplicate
	return done, nil
}

// hash is of what may not change under one id.
func (r *Resend) hash(e *Stored) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %t", e.ID, r.Subscription, r.MatchNow))
}
