package fanout

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Sweeper deletes events that were received longer ago than Keep, once their messages are purged, and the
// former versions of subscriptions that only they could ask for.
type Sweeper struct {
	Store  Store
	Keep   time.Duration
	Every  time.Duration // between two sweeps; zero: an hour
	Logger *slog.Logger  // nil: nothing is logged
}

// Run sweeps at once and then regularly until ctx ends. It returns an error when the store has stopped.
func (s *Sweeper) Run(ctx context.Context) error {
	every, log := s.Every, s.Logger
	if every <= 0 {
		every = time.Hour
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		purged, err := s.sweep(ctx)
		switch {
		case errors.Is(err, holdfast.ErrClosed):
			return err
		case err != nil && ctx.Err() == nil:
			log.ErrorContext(ctx, "events not purged", slog.Any("error", err))
		case purged > 0:
			log.InfoContext(ctx, "events purged", slog.Int("count", purged))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Sweeper) sweep(ctx context.Context) (purged int, err error) {
	for after, more := int64(0), true; more && err == nil && ctx.Err() == nil; more = after != 0 {
		var n int
		n, after, err = s.Store.PurgeEvents(ctx, s.Keep, after)
		purged += n
	}
	for more := true; more && err == nil && ctx.Err() == nil; {
		more, err = s.Store.PurgeVersions(ctx)
	}
	return purged, err
}
