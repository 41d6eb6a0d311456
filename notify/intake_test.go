package notify_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// NO-04: a notification of a node's own program stands as the worst of its
// copies, under the id that its author was given.
func TestANotificationStandsAsTheWorstOfItsCopies(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.channel(t, notify.Channel{Name: "room", Kind: "chat"})
		o.list(t, "ops", notify.Recipient{Channel: "mail", Address: "a@x"}, notify.Recipient{Channel: "room"})
		o.chat.become(fault(errAway))
		stop := o.run(t)
		defer stop()
		desk := &notify.Intake{Ingester: o.ingester, Site: "central"}
		n := notify.Notification{List: "ops", Subject: "s", Origin: notify.Origin{Script: "watch", Enqueued: time.Now()}}
		r, err := desk.Submit(t.Context(), n)
		if err != nil || r.ID == "" || r.Duplicate {
			t.Fatalf("got %+v, %v", r, err)
		}
		n.ID = r.ID
		if again, err := desk.Submit(t.Context(), n); err != nil || !again.Duplicate {
			t.Errorf("a repeat: %+v, %v", again, err)
		}
		time.Sleep(10 * time.Second)
		s, err := desk.Status(t.Context(), r.ID)
		if err != nil || s.ID != r.ID || s.Status != notify.Retrying || s.LastError == "" || !s.Delivered.IsZero() || s.Enqueued.IsZero() {
			t.Errorf("while one channel is away: %+v, %v", s, err)
		}
		o.chat.become(nil)
		time.Sleep(time.Hour)
		if s, err := desk.Status(t.Context(), r.ID); err != nil || s.Status != notify.Delivered || s.Delivered.IsZero() {
			t.Errorf("in the end: %+v, %v", s, err)
		}
		if c := o.copiesOf(t, "central", r.ID)[0]; c.Notification.Origin.Script != "watch" || c.Notification.Origin.Site != "central" {
			t.Errorf("it comes from %+v", c.Notification.Origin)
		}
		if _, err := desk.Status(t.Context(), "nobody"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("of an id that nobody knows: %v", err)
		}
	})
}
