package notify_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// troubled is a store that cannot be read for a while, as a database that is
// being started again.
type troubled struct {
	notify.Store
	holdfast.Lanes
	away atomic.Bool
}

func (s *troubled) trouble() error {
	if s.away.Load() {
		return holdfast.ErrUnavailable
	}
	return nil
}

func (s *troubled) Targets(ctx context.Context, id holdfast.ID) ([]notify.Target, error) {
	if err := s.trouble(); err != nil {
		return nil, err
	}
	return s.Store.Targets(ctx, id)
}

func (s *troubled) LaneFaults(ctx context.Context) ([]holdfast.LaneFaultInfo, error) {
	if err := s.trouble(); err != nil {
		return nil, err
	}
	return s.Lanes.LaneFaults(ctx)
}

// A store that cannot be read is no reason to charge a notification: nobody was
// asked. It goes on when the store does.
func TestTroubleOfTheStoreChargesNobody(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		s := &troubled{Store: o.db, Lanes: o.db}
		o.channels.Store = s
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		stop := o.run(t)
		defer stop()
		time.Sleep(2 * time.Second)
		s.away.Store(true)
		o.sent(t, "ops", "n")
		time.Sleep(time.Hour)
		if r := o.one(t, "n"); r.Status != notify.Pending || r.Failures != 0 || len(o.mail.asked()) != 0 {
			t.Errorf("while the store cannot be read it is %s with %d failures: %s", r.Status, r.Failures, r.LastError)
		}
		s.away.Store(false)
		time.Sleep(time.Minute)
		if r := o.one(t, "n"); r.Status != notify.Delivered {
			t.Errorf("after that it is %s: %s", r.Status, r.LastError)
		}
	})
}

// A channel that could not begin, because the store could not be read at that
// moment, begins later.
func TestAChannelThatCouldNotBeginBeginsLater(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		s := &troubled{Store: o.db, Lanes: o.db}
		s.away.Store(true)
		o.channels.Dispatcher.Lanes = s
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		stop := o.run(t)
		defer stop()
		o.sent(t, "ops", "n")
		time.Sleep(time.Minute)
		if r := o.one(t, "n"); r.Status != notify.Pending {
			t.Fatalf("a channel that cannot begin: it is %s", r.Status)
		}
		s.away.Store(false)
		time.Sleep(5 * time.Second)
		if r := o.one(t, "n"); r.Status != notify.Delivered {
			t.Errorf("after that it is %s", r.Status)
		}
	})
}
