package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// absent is a store that is away for its first calls of one kind.
type absent struct {
	holdfast.Store
	holdfast.Lanes
	asking, deciding, faulty int // so many of them fail
	err                      error
}

func (a *absent) fail(left *int) error {
	if *left == 0 {
		return nil
	}
	*left--
	return a.err
}

func (a *absent) NotifyEnded(ctx context.Context, parked, expired bool) (bool, error) {
	if err := a.fail(&a.asking); err != nil {
		return false, err
	}
	return a.Store.NotifyEnded(ctx, parked, expired)
}

func (a *absent) LaneDecisions(ctx context.Context) ([]holdfast.LaneDecision, error) {
	if err := a.fail(&a.deciding); err != nil {
		return nil, err
	}
	return a.Lanes.LaneDecisions(ctx)
}

func (a *absent) LaneFaults(ctx context.Context) ([]holdfast.LaneFaultInfo, error) {
	if err := a.fail(&a.faulty); err != nil {
		return nil, err
	}
	return a.Lanes.LaneFaults(ctx)
}

// A database that goes away just when a dispatcher begins ends it as little as one
// that goes away later; any other error at the start is one.
func TestADispatcherBeginsOnceItsStoreIsThere(t *testing.T) {
	t.Parallel()
	away, broken := fmt.Errorf("the server restarts: %w", holdfast.ErrUnavailable), errors.New("no such table")
	for name, c := range map[string]struct {
		store absent
		want  error
	}{
		"asked for notices": {absent{asking: 3, err: away}, nil},
		"decisions read":    {absent{deciding: 3, err: away}, nil},
		"faults read":       {absent{faulty: 3, err: away}, nil},
		"each in turn":      {absent{asking: 1, deciding: 1, faulty: 1, err: away}, nil},
		"another error":     {absent{faulty: 1, err: broken}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				c.store.Store, c.store.Lanes = db, db
				ids := enqueue(t, db, numbered(1, "a")...)
				routes := map[string]holdfast.Route{"a": {Deliverer: &script{answer: always(nil)}}}
				stop := dispatch(t, &holdfast.Dispatcher{Store: &c.store, Lanes: &c.store, Routes: routes})
				time.Sleep(2 * time.Second)
				wantState(t, db, ids[0], holdfast.Pending)
				time.Sleep(10 * time.Second)
				if c.want == nil {
					wantState(t, db, ids[0], holdfast.Delivered)
				}
				if err := stop(); !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		})
	}
}

func TestADispatcherThatWaitsForItsStoreCanBeStopped(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		store := &absent{Store: db, Lanes: db, asking: 1 << 30, err: holdfast.ErrUnavailable}
		stop := dispatch(t, &holdfast.Dispatcher{Store: store, Routes: map[string]holdfast.Route{"a": {Deliverer: &script{answer: always(nil)}}}})
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Errorf("a stop while the store is away: %v", err)
		}
	})
}
