package notify_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// F1-71: a notification that comes just when its channel is disabled waits as
// though it came later: it is charged nothing, and goes as soon as the channel is
// there again.
func TestANotificationThatMeetsADisabledChannelIsNotCharged(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		stop := o.run(t)
		defer stop()
		for i := range 20 { // at each moment between two looks at the directory
			id := holdfast.ID(fmt.Sprintf("n-%d", i))
			o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Disabled: true})
			if _, err := o.channels.Directory.Latest(t.Context()); err != nil { // as the API does, which has just disabled it
				t.Fatal(err)
			}
			time.Sleep(time.Duration(i) * 70 * time.Millisecond)
			o.sent(t, "ops", id)
			time.Sleep(3 * time.Second)
			if r := o.one(t, id); r.Failures != 0 || r.Status != notify.Pending {
				t.Errorf("sent %d ms after, it is %s with %d failures", i*70, r.Status, r.Failures)
			}
			o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
			time.Sleep(3 * time.Second)
			if r := o.one(t, id); r.Status != notify.Delivered {
				t.Errorf("sent %d ms after, it is %s when the channel is there again", i*70, r.Status)
			}
		}
	})
}

// F1-69: what a channel's adapter has learned, as that its credentials are
// refused, does not outlive a resume.
func TestAResumedChannelHasANewAdapter(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		stop := o.run(t)
		defer stop()
		o.sent(t, "ops", "n")
		time.Sleep(time.Second)
		before, _ := o.mail.counts()
		if err := o.channels.Resume(t.Context(), "mail"); err != nil {
			t.Fatal(err)
		}
		o.sent(t, "ops", "m")
		time.Sleep(3 * time.Second)
		if after, closed := o.mail.counts(); before != 1 || after != 2 || closed != 1 {
			t.Errorf("%d adapters, then %d, of which %d are closed", before, after, closed)
		}
	})
}
