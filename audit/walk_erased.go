package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Times of waiting for the record of an erasure: the values go first.
const (
	erasedWait = 2 * time.Second
	erasedLook = 100 * time.Millisecond
)

// valuesGone says of which own logs more values are gone than records say.
func (v *verification) valuesGone(ctx context.Context, list []LogReport) error {
	for i := range list {
		r := &list[i]
		if !r.Own || r.Status != Intact || r.Erased <= v.said(r.Origin) {
			continue
		}
		if err := v.newest.follow(ctx, func() bool { return r.Erased <= v.said(r.Origin) }); err != nil {
			return err
		}
		if said := v.said(r.Origin); r.Erased > said {
			r.Status, r.Detail = Unanchored, fmt.Sprintf("%d values are gone, and records say that %d were erased", r.Erased, said)
		}
	}
	return nil
}

// said returns how many values of a log the records say were erased.
func (v *verification) said(origin string) (n int64) {
	for _, by := range v.erasing {
		n += by[origin]
	}
	return n
}

// follow reads on where the walk of the newest own log has ended, until enough is said of what was erased, for a while at most.
func (w *walk) follow(ctx context.Context, enough func() bool) error {
	if w == nil || w.exported {
		return nil
	}
	size, head, by := w.log.Size, w.head, w.erasing[w.log.Origin]
	for until := time.Now().Add(erasedWait); ; {
		chained := true
		if err := w.from.Records(ctx, w.log.Log, size, verifyPage, func(s *Stored) error {
			next := ChainHash(size+1, head, LeafHash(s.Leaf))
			if chained = chained && s.Seq == size+1 && bytes.Equal(next[:], s.Hash); !chained {
				return nil // a later verification tells
			}
			size, head = s.Seq, next
			var d Decision
			if r, err := Read(s.Leaf, nil); err == nil && r.Kind == EraseKind && json.Unmarshal(r.Extra, &d) == nil {
				by[d.Log] += d.Values
			}
			return nil
		}); err != nil || !chained || enough() || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(erasedLook):
		}
	}
}
