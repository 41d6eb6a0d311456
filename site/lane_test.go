package site_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// firstFails cannot configure a lane the first time, as where the disk is full.
type firstFails struct {
	*sqlite.DB

	n int
}

func (f *firstFails) ConfigureLane(ctx context.Context, d string, s holdfast.LaneSettings) error {
	if f.n++; f.n == 1 {
		return errors.New("database or disk is full")
	}
	return f.DB.ConfigureLane(ctx, d, s)
}

// A disk that is full when the site starts does not put alarms behind the backlog for as
// long as it runs.
func TestTheWayToCentralIsConfiguredOnceTheStoreCan(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var f *firstFails
		p := open(t, t.TempDir(), func(c *site.Config) {
			f = &firstFails{DB: c.Store.(*sqlite.DB)}
			c.Store, c.Central = f, holdfast.Route{Deliverer: &target{}}
		})
		defer p.stop()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if f.n != 2 {
			t.Errorf("asked %d times in a minute, want until it is done", f.n)
		}
	})
}

// What a program says of the order of its way to central holds.
func TestTheWayToCentralIsStrictOnRequest(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var db *sqlite.DB
		p := open(t, t.TempDir(), func(c *site.Config) {
			db, c.CentralStrict = c.Store.(*sqlite.DB), true
			c.Central = holdfast.Route{Deliverer: &target{answer: func(holdfast.Message) ([]byte, error) {
				return nil, &holdfast.Failure{Outcome: holdfast.Permanent, Code: "no"}
			}}}
		})
		defer p.stop()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		for _, id := range []holdfast.ID{"a", "b"} {
			if _, err := db.Enqueue(ctx, holdfast.Message{ID: id, Destination: notify.Central, Endpoint: "E", OrderingKey: "k", Payload: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if r, err := db.Get(ctx, "b"); err != nil || r.State != holdfast.Pending {
			t.Errorf("behind a parked message of its key: %v, %v; want it pending", r.State, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A dispatcher that ends by itself ends the site, also while the store does not take how
// the way to central is.
func TestASiteEndsWithItsDispatcher(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var db *sqlite.DB
		p := open(t, t.TempDir(), func(c *site.Config) {
			db = c.Store.(*sqlite.DB)
			c.Store, c.Central = neverConfigures{db}, holdfast.Route{Deliverer: &target{}}
		})
		ended := make(chan error, 1)
		go func() { ended <- p.Run(t.Context()) }()
		time.Sleep(time.Second)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if !errors.Is(err, holdfast.ErrClosed) {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(time.Hour):
			t.Fatal("it goes on without a store")
		}
	})
}

type neverConfigures struct{ *sqlite.DB }

func (neverConfigures) ConfigureLane(context.Context, string, holdfast.LaneSettings) error {
	return holdfast.ErrDiskFull
}
