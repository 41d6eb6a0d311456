package site

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// Forwarder puts the notifications of a site into its outbox, from which they are forwarded to
// central. A node gives it to its operator API. Its methods may be called concurrently.
type Forwarder struct {
	Enqueuer holdfast.Enqueuer
	Outbox   holdfast.Outbox
	Name     string // of the site; empty: notify.UnknownSite
	// Ask asks central for the standing of a notification that has left this site. It returns
	// ErrNotFound if central does not know it. Nil: central cannot be asked.
	Ask func(ctx context.Context, id holdfast.ID) (notify.Standing, error)
}

// Submit takes a notification durably. It sets the site, and the time of sending if that is not
// set: the site decides these, not the author (SF-19, SF-26). An id that is known with other
// content is ErrConflict.
func (f *Forwarder) Submit(ctx context.Context, n notify.Notification) (holdfast.Receipt, error) {
	m, err := f.message(n)
	if err != nil {
		return holdfast.Receipt{}, fmt.Errorf("notify %s: %w", n.List, err)
	}
	receipts, err := f.Enqueuer.Enqueue(ctx, m)
	if err != nil {
		return holdfast.Receipt{}, fmt.Errorf("notify %s: %w", n.List, err)
	}
	if len(receipts) != 1 {
		return holdfast.Receipt{}, fmt.Errorf("notify %s: got %d receipts for one message", n.List, len(receipts))
	}
	return receipts[0], nil
}

func (f *Forwarder) message(n notify.Notification) (m holdfast.Message, err error) {
	if err := n.Origin.Validate(); err != nil {
		return m, err
	}
	if n.Origin.Enqueued.IsZero() {
		n.Origin.Enqueued = time.Now()
	}
	m = holdfast.Message{ID: n.ID, Source: f.Name, Destination: notify.Central, Endpoint: notify.Endpoint, Headers: n.Origin.Headers()}
	if m.Source == "" {
		m.Source = notify.UnknownSite
	}
	m.Payload, err = notify.Encode(n)
	return m, err
}

// Status returns the standing of a notification: from the site's own row while the site still
// handles it, otherwise from central (NO-04). An unknown id is ErrNotFound. If central cannot be
// asked now, the error wraps ErrUnavailable.
func (f *Forwarder) Status(ctx context.Context, id holdfast.ID) (notify.Standing, error) {
	id, err := holdfast.ParseID(string(id)) // a UUID in any form is one value (SF-12)
	if err != nil {
		return notify.Standing{}, fmt.Errorf("notification: %w: %w", holdfast.ErrInvalid, err)
	}
	r, err := f.Outbox.Get(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return f.ask(ctx, id, nil)
	case err != nil:
		return notify.Standing{}, err
	case r.Message.Destination != notify.Central:
		return notify.Standing{}, fmt.Errorf("notification %s: the id belongs to a message for %s: %w", id, r.Message.Destination, holdfast.ErrNotFound)
	case r.State == holdfast.Delivered:
		return f.ask(ctx, id, &r)
	}
	return standingOf(&r), nil
}

// ask asks central. If this site knows that the notification has left, "not found" is no answer:
// central may have lost it, and will get it again.
func (f *Forwarder) ask(ctx context.Context, id holdfast.ID, left *holdfast.Record) (notify.Standing, error) {
	if f.Ask == nil {
		return notify.Standing{}, fmt.Errorf("notification %s: this program cannot ask central: %w", id, holdfast.ErrUnavailable)
	}
	is, err := f.Ask(ctx, id)
	switch {
	case err == nil:
		return is, nil
	case errors.Is(err, holdfast.ErrNotFound) && left == nil:
		return notify.Standing{}, fmt.Errorf("notification %s: %w", id, holdfast.ErrNotFound)
	case errors.Is(err, holdfast.ErrNotFound):
		return notify.Standing{}, fmt.Errorf("notification %s: central has accepted it but does not show it now: %w", id, holdfast.ErrUnavailable)
	case errors.Is(err, holdfast.ErrUnavailable):
		return notify.Standing{}, fmt.Errorf("notification %s: %w", id, err)
	}
	return notify.Standing{}, fmt.Errorf("notification %s: ask central: %w: %w", id, holdfast.ErrUnavailable, err)
}

// standingOf returns the standing of a row that the site still decides about.
func standingOf(r *holdfast.Record) notify.Standing {
	is := notify.Standing{
		ID: r.Message.ID, Status: notify.StatusOf(r.State, r.Tries), Retries: max(r.Tries-1, 0), LastError: r.LastError,
		Enqueued: notify.OriginOf(r.Message.Headers).Enqueued, // central will report the same time later
	}
	if is.Status == notify.Pending || is.Status == notify.Retrying {
		is.Status = notify.Forwarding
	}
	return is
}
