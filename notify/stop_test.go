package notify_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// onceLost is a store that fails to record outcomes once, when it is told to.
type onceLost struct {
	holdfast.Store
	fails atomic.Bool
}

func (s *onceLost) Settle(ctx context.Context, list ...holdfast.Settlement) ([]bool, error) {
	if s.fails.CompareAndSwap(true, false) {
		return nil, errors.New("connection reset")
	}
	return s.Store.Settle(ctx, list...)
}

// NO-12: a mail that has left when the node stops, and is answered late, goes once,
// though the outcome of another destination is not recorded at the first try.
func TestAMailThatIsAnsweredAtAStopGoesOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		store := &onceLost{Store: o.db}
		o.attach(store)
		o.channels.Dispatcher.Routes = map[string]holdfast.Route{"peer": {Timeout: time.Hour, Deliverer: holdfast.DelivererFunc(func(ctx context.Context, _ holdfast.Message) (holdfast.Receipt, error) {
			<-ctx.Done()
			store.fails.Store(true)
			return holdfast.Receipt{}, ctx.Err()
		})}}
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		o.mail.become(func(ctx context.Context, to []notify.Recipient) notify.Report {
			<-ctx.Done()
			<-time.After(20 * time.Second)
			return accept(to)
		})
		stop := o.run(t)
		o.sent(t, "ops", "n")
		if _, err := o.db.Enqueue(t.Context(), holdfast.Message{ID: "p", Destination: "peer", Endpoint: "E", Payload: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * time.Second)
		stop()
		o.reopen(t)
		defer o.close(t)
		o.attach(o.db)
		o.mail.become(func(_ context.Context, to []notify.Recipient) notify.Report { return accept(to) })
		stop = o.run(t)
		<-time.After(5 * time.Minute)
		synctest.Wait()
		stop()
		if got := o.mail.asked(); len(got) != 1 {
			t.Errorf("asked %v", got)
		}
		if r := o.one(t, "n"); r.Status != notify.Delivered {
			t.Errorf("it is %s", r.Status)
		}
	})
}
