package link

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-mq/holdfast"
)

// remote is the outbox of a site, seen from central.
type remote struct {
	central *Central
	site    string
}

// Outbox returns the outbox of a site. Each call asks the site and has Ask's errors. Counts returns
// the numbers of the site's last poll. A List without states lists parked messages, unless it asks
// for held ones.
func (c *Central) Outbox(site string) holdfast.Outbox { return &remote{c, site} }

func (r *remote) one(ctx context.Context, command Command) (holdfast.Record, error) {
	var one record
	if err := r.ask(ctx, command, &one); err != nil {
		return holdfast.Record{}, err
	}
	return one.whole(), nil
}

func (r *remote) ask(ctx context.Context, command Command, into any) error {
	body, err := r.central.Ask(ctx, r.site, command)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: its answer cannot be read: %w", &ErrSite{Site: r.site, Trouble: Failed}, err)
	}
	return nil
}

// Get implements holdfast.Outbox.
func (r *remote) Get(ctx context.Context, id holdfast.ID) (holdfast.Record, error) {
	return r.one(ctx, Command{Verb: Show, Message: id})
}

// List implements holdfast.Outbox.
func (r *remote) List(ctx context.Context, q holdfast.Query) (holdfast.Page, error) {
	var got page
	err := r.ask(ctx, Command{Verb: List, States: q.States, Destination: q.Destination, Held: q.Held, After: q.After, Limit: q.Limit}, &got)
	if err != nil {
		return holdfast.Page{}, err
	}
	p, err := got.whole(q.Limit, q.Held)
	if err != nil {
		return holdfast.Page{}, fmt.Errorf("%w: its answer cannot be read: %w", &ErrSite{Site: r.site, Trouble: Failed}, err)
	}
	return p, nil
}

// Requeue implements holdfast.Outbox.
func (r *remote) Requeue(ctx context.Context, id holdfast.ID, q holdfast.Requeue) (holdfast.Record, error) {
	return r.one(ctx, Command{Verb: Retry, Message: id, TTL: q.TTL, Force: q.Force, Actor: q.Actor})
}

// Discard implements holdfast.Outbox.
func (r *remote) Discard(ctx context.Context, id holdfast.ID, actor string) (holdfast.Record, error) {
	return r.one(ctx, Command{Verb: Discard, Message: id, Actor: actor})
}

// Reschedule implements holdfast.Outbox.
func (r *remote) Reschedule(ctx context.Context, id holdfast.ID, q holdfast.Reschedule) (holdfast.Record, error) {
	return r.one(ctx, Command{Verb: Reschedule, Message: id, In: q.In, Actor: q.Actor})
}

// Counts implements holdfast.Outbox.
func (r *remote) Counts() holdfast.Counts {
	b := r.central.state(r.site)
	b.mu.Lock()
	defer b.mu.Unlock()
	return holdfast.Counts{Pending: b.health.Depth, Parked: b.health.Parked}
}
