package holdfast

import (
	"context"
	"log/slog"
	"time"
)

// Sweeper does the upkeep. It expires unclaimed messages within ten seconds after their
// TTL ends, and purges final rows and forgotten ids after their retention. It does nothing
// else.
type Sweeper struct {
	Outbox Sweepable // nil: not swept
	Inbox  InboxLog  // nil: not swept

	Retention      Retention     // of final rows; zero: forever
	InboxRetention time.Duration // zero: DefaultInboxRetention
	// Held returns Retention.Held for the next purge. It is called before each purge and must
	// not block. Nil: nothing is held.
	Held     func() map[string]time.Duration
	Every    time.Duration // between purges; zero: 5 min (OI-10)
	Observer Observer
	Logger   *slog.Logger
}

// expireEvery is how often the sweeper looks for rows whose TTL is over. A claim expires
// most of them; the sweeper finds those of lanes that are down.
const expireEvery = 10 * time.Second

// Run sweeps until ctx ends. A sweep that fails is logged and made again.
func (s *Sweeper) Run(ctx context.Context) error {
	every := s.Every
	if every <= 0 {
		every = 5 * time.Minute
	}
	expire, purge := time.NewTicker(min(expireEvery, every)), time.NewTicker(every)
	defer expire.Stop()
	defer purge.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-expire.C:
			s.expire(ctx)
		case <-purge.C:
			s.purge(ctx)
		}
	}
}

func (s *Sweeper) expire(ctx context.Context) {
	if s.Outbox == nil {
		return
	}
	s.pages(ctx, "messages expired", func() (int, bool, error) {
		n, more, err := s.Outbox.Expire(ctx)
		if n > 0 && s.Observer != nil {
			s.Observer.ObserveExpired(n)
		}
		return n, more, err
	})
}

func (s *Sweeper) purge(ctx context.Context) {
	if s.Outbox != nil {
		keep := s.Retention
		if s.Held != nil {
			keep.Held = s.Held()
		}
		s.pages(ctx, "messages purged", func() (int, bool, error) { return s.Outbox.Purge(ctx, keep) })
	}
	if s.Inbox != nil {
		keep := s.InboxRetention
		if keep == 0 {
			keep = DefaultInboxRetention
		}
		s.pages(ctx, "inbox ids purged", func() (int, bool, error) { return s.Inbox.SweepInbox(ctx, keep) })
	}
}

// pages calls page until it has nothing more, and logs how much it did.
func (s *Sweeper) pages(ctx context.Context, done string, page func() (int, bool, error)) {
	total := 0
	for ctx.Err() == nil {
		n, more, err := page()
		total += n
		if err != nil {
			if ctx.Err() == nil && s.Logger != nil {
				s.Logger.ErrorContext(ctx, "sweep failed", slog.Any("error", err))
			}
			break
		}
		if !more {
			break
		}
	}
	if total > 0 && s.Logger != nil {
		s.Logger.InfoContext(ctx, "swept", slog.String("what", done), slog.Int("count", total))
	}
}
