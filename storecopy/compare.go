package storecopy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// compare reads both stores and checks that each row is the same, and that the target's counters
// are correct.
func (c *copying) compare(ctx context.Context) (r Report, err error) {
	r.States = map[string]int64{}
	counts := holdfast.Counts{Lanes: map[string]holdfast.LaneCounts{}}
	here, there := sha256.New(), sha256.New()
	for _, t := range rows.Tables() {
		a := &reading{store: c.from, next: rows.Range{Table: t, Base: c.progress.Base, Limit: pageRows, Bytes: pageBytes}, sum: here}
		b := &reading{store: c.to, next: rows.Range{Table: t, Base: c.progress.HereNow, Limit: pageRows, Bytes: pageBytes}, sum: there}
		for {
			x, err := a.row(ctx)
			if err != nil {
				return r, fmt.Errorf("compare %s, read source: %w", t.Name, err)
			}
			y, err := b.row(ctx)
			if err != nil {
				return r, fmt.Errorf("compare %s, read target: %w", t.Name, err)
			}
			if err := differ(t, x, y); err != nil {
				return r, fmt.Errorf("%w: %w; the source is unchanged: empty the target and begin again", ErrDiffers, err)
			}
			if x == nil {
				break
			}
			r.Totals.count(t, 1)
			r.count(x.row, &counts)
			if all := r.all(); all%pageRows == 0 {
				c.o.Watch(Status{Phase: comparing, Done: all, All: c.totals.all()})
			}
		}
	}
	r.Digest = hex.EncodeToString(here.Sum(nil))
	if other := hex.EncodeToString(there.Sum(nil)); other != r.Digest {
		return r, fmt.Errorf("%w: digest %s there, %s here", ErrDiffers, r.Digest, other)
	}
	c.o.Watch(Status{Phase: comparing, Done: r.all(), All: c.totals.all()})
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

// count counts a row that was found.
func (r *Report) count(x rows.Row, n *holdfast.Counts) {
	switch x := x.(type) {
	case *rows.Message:
		r.States[x.State.String()]++
		l := n.Lanes[x.Destination]
		switch x.State {
		case holdfast.Pending, holdfast.Claimed:
			l.Pending++
		case holdfast.Parked:
			l.Parked++
		case holdfast.Expired:
			l.Expired++
		case holdfast.Delivered, holdfast.Discarded:
		}
		n.Lanes[x.Destination] = l
	case *rows.Incoming:
		n.Inbox++
		if x.Kept {
			n.Kept++
		}
	}
}

// summed is a row, with its fields in canonical form.
type summed struct {
	row    rows.Row
	fields [][]byte
}

// differ returns an error that says how a row of the source differs from that of the target.
func differ(t *rows.Table, x, y *summed) error {
	switch {
	case x == nil && y == nil:
		return nil
	case y == nil:
		return fmt.Errorf("%s is missing", called(x.row))
	case x == nil:
		return fmt.Errorf("%s is in the target only", called(y.row))
	case t.Place(x.row) != t.Place(y.row):
		return fmt.Errorf("where the source has %s, the target has %s", called(x.row), called(y.row))
	}
	for i := range x.fields {
		if !bytes.Equal(x.fields[i], y.fields[i]) {
			return fmt.Errorf("of %s the %s differs", called(x.row), strings.ToLower(t.Columns[i].Field))
		}
	}
	return nil
}

// reading reads the rows of one table, a page at a time, and adds them to a digest.
type reading struct {
	store Exporter
	next  rows.Range
	sum   hash.Hash
	page  []rows.Row
}

func (r *reading) row(ctx context.Context) (*summed, error) {
	t := r.next.Table
	if len(r.page) == 0 {
		page, err := r.store.Read(ctx, r.next)
		if err != nil || len(page) == 0 {
			return nil, err
		}
		r.next.After = t.Place(page[len(page)-1])
		tidy(page)
		r.page = page
	}
	x := &summed{row: r.page[0]}
	r.page = r.page[1:]
	var n [8]byte
	for _, f := range t.Fields(x.row) {
		b := canonical(f)
		x.fields = append(x.fields, b)
		// Each field with its length, so that no boundary can move.
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		_, _ = r.sum.Write(n[:]) // never fails
		_, _ = r.sum.Write(b)
	}
	return x, nil
}
