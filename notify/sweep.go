package notify

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Sweeper deletes notifications that ended longer ago than Keep (NO-15).
type Sweeper struct {
	Store  Store
	Keep   time.Duration
	Every  time.Duration // between two sweeps; zero: an hour
	Logger *slog.Logger  // nil: nothing is logged
}

// Run sweeps at once and then regularly until ctx ends. It returns an error when the store has
// stopped.
func (s *Sweeper) Run(ctx context.Context) error {
	every := s.Every
	if every <= 0 {
		every = time.Hour
	}
	log := s.Logger
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
			log.ErrorContext(ctx, "notifications not purged", slog.Any("error", err))
		case purged > 0:
			log.InfoContext(ctx, "notifications purged", slog.Int("count", purged))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Sweeper) sweep(ctx context.Context) (purged int, err error) {
	for more := true; more && err == nil && ctx.Err() == nil; {
		var n int
		n, more, err = s.Store.PurgeNotifications(ctx, s.Keep)
		purged += n
	}
	return purged, err
}
