package move

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/holdfast-mq/holdfast"
)

// compare reads both stores, row by row, and looks whether each row is the
// same, and the target's counters what there is.
func (c *copying) compare(ctx context.Context) (r Report, err error) {
	r.States = map[string]int64{}
	counts := holdfast.Counts{Lanes: map[string]holdfast.LaneCounts{}}
	here, there := sha256.New(), sha256.New()
	for _, part := range parts() {
		a := &rows{store: c.from, base: c.progress.Base, part: part, sum: here}
		b := &rows{store: c.to, base: c.progress.HereNow, part: part, sum: there}
		for {
			x, err := a.next(ctx)
			if err != nil {
				return r, fmt.Errorf("compare %s, read source: %w", part, err)
			}
			y, err := b.next(ctx)
			if err != nil {
				return r, fmt.Errorf("compare %s, read target: %w", part, err)
			}
			if err := differ(x, y); err != nil {
				return r, fmt.Errorf("%w: %w; nothing was changed in the source: empty the target and begin again", ErrDiffers, err)
			}
			if x == nil {
				break
			}
			r.count(x, &counts)
			if all := r.all(); all%PageRows == 0 {
				c.o.Watch(Status{Phase: string(comparing), Done: all, All: c.totals.all()})
			}
		}
	}
	r.Digest = hex.EncodeToString(here.Sum(nil))
	if other := hex.EncodeToString(there.Sum(nil)); other != r.Digest {
		return r, fmt.Errorf("%w: digest %s there, %s here", ErrDiffers, r.Digest, other)
	}
	c.o.Watch(Status{Phase: string(comparing), Done: r.all(), All: c.totals.all()})
	return r, c.compareCounts(ctx, &r, counts)
}

func (c *copying) compareCounts(ctx context.Context, r *Report, want holdfast.Counts) error {
	if r.Messages != c.totals.Messages || r.Inbox != c.totals.Inbox || r.Events != c.totals.Events {
		return fmt.Errorf("%w: the source counts %d messages, %d rows of history and %d ids of its inbox, of which %d, %d and %d were found",
			ErrDiffers, c.totals.Messages, c.totals.Events, c.totals.Inbox, r.Messages, r.Events, r.Inbox)
	}
	if r.Notifications != c.totals.Notifications {
		return fmt.Errorf("%w: the source counts %d notifications, of which %d were found", ErrDiffers, c.totals.Notifications, r.Notifications)
	}
	have, err := c.to.Counts(ctx)
	if err != nil {
		return fmt.Errorf("read the target's counters: %w", err)
	}
	if have.Inbox != want.Inbox || have.Kept != want.Kept {
		return fmt.Errorf("%w: the target counts %d ids of its inbox, %d of them kept, and has %d and %d", ErrDiffers, have.Inbox, have.Kept, want.Inbox, want.Kept)
	}
	for d, n := range have.Lanes {
		if n != want.Lanes[d] {
			return fmt.Errorf("%w: in the lane of %s the target counts %+v and has %+v", ErrDiffers, d, n, want.Lanes[d])
		}
		delete(want.Lanes, d)
	}
	for d, n := range want.Lanes {
		if n != (holdfast.LaneCounts{}) {
			return fmt.Errorf("%w: in the lane of %s the target counts nothing and has %+v", ErrDiffers, d, n)
		}
	}
	return nil
}

// count adds a row to what was found.
func (r *Report) count(x *row, n *holdfast.Counts) {
	switch {
	case x.message != nil:
		r.Messages++
		r.States[x.message.State.String()]++
		l := n.Lanes[x.message.Destination]
		switch x.message.State {
		case holdfast.Pending, holdfast.Claimed:
			l.Pending++
		case holdfast.Parked:
			l.Parked++
		case holdfast.Expired:
			l.Expired++
		case holdfast.Delivered, holdfast.Discarded:
		}
		n.Lanes[x.message.Destination] = l
	case x.incoming != nil:
		r.Inbox++
		n.Inbox++
		if x.incoming.Kept {
			n.Kept++
		}
	case x.event:
		r.Events++
	case x.notification:
		r.Notifications++
	}
}

// row is one row in canonical form.
type row struct {
	name     string // for people
	fields   []field
	message  *Message
	incoming *Incoming
	event    bool

	notification bool
}

// differ says what differs between a row of the source and one of the target.
func differ(x, y *row) error {
	switch {
	case x == nil && y == nil:
		return nil
	case y == nil:
		return fmt.Errorf("%s is missing", x.name)
	case x == nil:
		return fmt.Errorf("%s is in the target only", y.name)
	case x.name != y.name:
		return fmt.Errorf("where the source has %s, the target has %s", x.name, y.name)
	case len(x.fields) != len(y.fields):
		return fmt.Errorf("of %s the number of recipients differs, or whether its message is there", x.name)
	}
	for i := range x.fields {
		if !bytes.Equal(x.fields[i].value, y.fields[i].value) {
			return fmt.Errorf("of %s the %s differs", x.name, x.fields[i].name)
		}
	}
	return nil
}

// rows reads the rows of one part, a page at a time, and sums them up.
type rows struct {
	store Exporter
	base  int64
	part  Part
	sum   hash.Hash
	after int64
	page  []row
	end   bool
}

func (r *rows) next(ctx context.Context) (*row, error) {
	for len(r.page) == 0 && !r.end {
		p, err := r.store.Read(ctx, r.base, r.part, r.after)
		if err != nil {
			return nil, err
		}
		tidy(&p)
		r.after, r.end, r.page = p.Last, p.End, p.rows()
	}
	if len(r.page) == 0 {
		return nil, nil //nolint:nilnil // there are no more
	}
	x := r.page[0]
	r.page = r.page[1:]
	x.write(r.sum)
	return &x, nil
}
