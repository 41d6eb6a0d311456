package minutes_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/minutes"
)

// kept is a store in memory, which fails when it is told to.
type kept struct {
	list []minutes.Minute
	down atomic.Bool
}

func (k *kept) KeepMinute(_ context.Context, m *minutes.Minute) error {
	if k.down.Load() {
		return errors.New("down")
	}
	k.list = append(k.list, *m)
	return nil
}

func (k *kept) Minutes(context.Context, time.Time) ([]minutes.Minute, error) { return k.list, nil }

func (k *kept) PurgeMinutes(context.Context, time.Duration) error { return nil }

// Each row has what happened in its minute. A minute that the store did not take is a gap, and the next row has
// nothing of it.
func TestAMinuteThatCannotBeWrittenIsAGap(t *testing.T) {
	racetest.Bubble(t, func(t *testing.T) {
		store, now := &kept{}, atomic.Pointer[minutes.Numbers]{}
		now.Store(&minutes.Numbers{Delivered: 100, Waiting: 5})
		ctx, stop := context.WithCancel(t.Context())
		start := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
		time.Sleep(time.Until(start) + 20*time.Second)
		r := &minutes.Recorder{Store: store, Node: "a", Read: func() minutes.Numbers { return *now.Load() }, Logger: slog.New(slog.DiscardHandler)}
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		for i := range 4 {
			time.Sleep(30 * time.Second)
			now.Store(&minutes.Numbers{Delivered: now.Load().Delivered + int64(i) + 1, Waiting: int64(i)})
			store.down.Store(i == 1)
			time.Sleep(30 * time.Second)
			synctest.Wait()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want := []minutes.Minute{
			{At: start, Node: "a", Took: 40 * time.Second, Numbers: minutes.Numbers{Delivered: 1}},
			{At: start.Add(2 * time.Minute), Node: "a", Took: time.Minute, Numbers: minutes.Numbers{Delivered: 3, Waiting: 2}},
			{At: start.Add(3 * time.Minute), Node: "a", Took: time.Minute, Numbers: minutes.Numbers{Delivered: 4, Waiting: 3}},
		}
		if d := cmp.Diff(store.list, want); d != "" {
			t.Errorf("(-got +want):\n%s", d)
		}
	})
}
