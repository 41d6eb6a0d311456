package activity

import (
	"context"
	"time"
)

const (
	// lookEvery is how often a reader that follows looks for more.
	lookEvery = time.Second
	// aliveEvery is how often such a reader is told that nothing has happened.
	aliveEvery = 15 * time.Second
	// mostAtOnce is how many acts a reader gets at once.
	mostAtOnce = 500
	// farBehind is how many acts a reader may be behind. One that is further behind skips to the
	// last keepUp ones.
	farBehind = 10_000
	keepUp    = 1000
)

// News is what a reader is told at once.
type News struct {
	Acts   []Act // oldest first; at most 500
	Last   int64 // the reader has heard of all acts up to this number
	Missed int64 // how many acts before these were skipped, because the reader was too slow
}

// Reader reads the log while it grows.
type Reader struct {
	Query Query
	After int64           // it has heard of all acts up to this number; negative: of all that are there
	Stop  <-chan struct{} // ends Follow, as its ctx does; may be nil
}

// Follow calls send with acts as they are written, until ctx ends or send fails. It calls send
// without acts now and then, so that a reader that is gone is noticed. It holds one call's acts in
// memory, however far the reader is behind; if that is far, News says what it missed.
func (r *Reader) Follow(ctx context.Context, s Store, send func(n News) error) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	quiet := time.Duration(0)
	for {
		n, more, err := r.news(ctx, s)
		if err != nil {
			return err
		}
		if quiet += lookEvery; len(n.Acts) > 0 || n.Missed > 0 || r.After < 0 || quiet >= aliveEvery {
			quiet = 0
			if err := send(n); err != nil {
				return err
			}
		}
		if r.After = n.Last; more {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.Stop:
			return nil
		case <-tick.C:
		}
	}
}

// news returns what the reader is told next.
func (r *Reader) news(ctx context.Context, s Store) (n News, more bool, err error) {
	after := r.After
	_, newest, err := s.Ends(ctx)
	if err != nil {
		return n, false, err
	}
	n.Last = newest
	if after < 0 || after >= newest { // beyond the newest: an older copy of the store was restored
		return n, false, nil
	}
	if newest-after > farBehind {
		n.Missed = newest - keepUp - after
		after += n.Missed
	}
	n.Acts, err = s.Acts(ctx, r.Query, Range{After: after, Before: newest + 1, Limit: mostAtOnce})
	if len(n.Acts) == mostAtOnce {
		n.Last, more = n.Acts[mostAtOnce-1].Seq, true
	}
	return n, more, err
}
