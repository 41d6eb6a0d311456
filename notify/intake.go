package notify

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Intake takes notifications from the programs of a node that notifies people itself, and returns
// their standing. It is safe for concurrent use.
type Intake struct {
	Ingester *Ingester
	Site     string // the node's own name, the site of what it takes; empty: UnknownSite
}

// Submit takes a notification durably. An id that is known with the same content is a Duplicate;
// with other content it is ErrConflict.
func (d *Intake) Submit(ctx context.Context, n Notification) (holdfast.Receipt, error) {
	payload, err := Encode(n)
	if err != nil {
		return holdfast.Receipt{}, err
	}
	if n.ID == "" {
		n.ID = holdfast.NewID()
	}
	return d.Ingester.Receive(ctx, holdfast.Message{
		ID: n.ID, Source: d.site(), Endpoint: Endpoint, Payload: payload, Headers: n.Origin.Headers(),
	})
}

// Status returns the standing of a notification of this node's own programs, or ErrNotFound.
func (d *Intake) Status(ctx context.Context, id holdfast.ID) (Standing, error) {
	return d.Standing(ctx, d.site(), id)
}

// Standing returns the standing of a notification of a site, or ErrNotFound.
func (d *Intake) Standing(ctx context.Context, site string, id holdfast.ID) (Standing, error) {
	copies, err := d.Ingester.Store.Notification(ctx, site, id)
	if err != nil {
		return Standing{}, err
	}
	return StandingOf(copies), nil
}

// site returns the site of notifications that come in here.
func (d *Intake) site() string { return cmp.Or(d.Site, UnknownSite) }

// StandingOf sums up the copies of one notification; there is at least one. The notification has
// the status and the retries of its worst copy. It is delivered when all copies are.
func StandingOf(copies []Record) Standing {
	first := &copies[0]
	s := Standing{ID: first.Notification.ID, Status: Delivered, Enqueued: first.Notification.Origin.Enqueued}
	if s.Enqueued.IsZero() {
		s.Enqueued = first.Created
	}
	worst := -1
	for i := range copies {
		c := &copies[i]
		if n := gravity(c.Status); n > worst {
			worst, s.Status, s.Retries, s.LastError = n, c.Status, max(c.Tries-1, 0), c.LastError
		}
		if c.Status == Delivered && c.Ended.After(s.Delivered) {
			s.Delivered = c.Ended
		}
	}
	if s.Status != Delivered {
		s.Delivered = time.Time{}
	}
	return s
}

// gravity orders statuses by how urgently a person should look.
func gravity(s Status) int {
	switch s {
	case Delivered:
		return 0
	case Discarded:
		return 1
	case Pending, Forwarding:
		return 2
	case Retrying:
		return 3
	case Parked:
		return 4
	}
	return 5
}
