package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
)

// Channels are made, changed, disabled and ended without a restart, and what
// waits meanwhile is kept.
func TestChannelsAreChangedWithoutARestart(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		stop := o.run(t)
		defer stop()
		time.Sleep(5 * time.Second)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		o.sent(t, "ops", "first")
		time.Sleep(3 * time.Second)
		if r := o.one(t, "first"); r.Status != notify.Delivered {
			t.Errorf("over a channel that was made while the node ran it is %s", r.Status)
		}
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Settings: json.RawMessage(`{"host":"new"}`)})
		time.Sleep(2 * time.Second)
		o.sent(t, "ops", "second")
		time.Sleep(3 * time.Second)
		synctest.Wait() // the courier has let go of what is read here
		if o.mail.made != 2 || o.mail.closed != 1 {
			t.Errorf("with new settings %d adapters were made and %d closed, want 2 and 1", o.mail.made, o.mail.closed)
		}
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Disabled: true})
		time.Sleep(2 * time.Second)
		o.sent(t, "ops", "third")
		time.Sleep(time.Hour)
		if r := o.one(t, "third"); r.Status != notify.Pending {
			t.Errorf("over a channel that is disabled it is %s", r.Status)
		}
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		time.Sleep(5 * time.Second)
		if r := o.one(t, "third"); r.Status != notify.Delivered {
			t.Errorf("after the channel was enabled it is %s", r.Status)
		}
		if err := nodestore.New(o.db, nil).Directory.DeleteChannel(t.Context(), "mail", o.book(t).Channels["mail"].Version, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if _, ok := o.channels.Status()["mail"]; ok {
			t.Error("a channel that was ended is served")
		}
	})
}

// Edge: one silent server beside a good one.
func TestASilentChannelCostsTheOthersNothing(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.channel(t, notify.Channel{Name: "room", Kind: "chat"})
		o.list(t, "good", mailTo("a@x")...)
		o.list(t, "silent", notify.Recipient{Channel: "room"})
		o.chat.become(func(ctx context.Context, _ []notify.Recipient) notify.Report {
			<-ctx.Done()
			return notify.Report{Fault: &holdfast.Failure{Err: ctx.Err()}}
		})
		stop := o.run(t)
		defer stop()
		for i := range 100 {
			o.sent(t, "silent", holdfast.ID(fmt.Sprint("s", i)))
		}
		time.Sleep(time.Minute)
		for i := range 100 {
			o.sent(t, "good", holdfast.ID(fmt.Sprint("g", i)))
		}
		time.Sleep(time.Second)
		for i := range 100 {
			if r := o.one(t, holdfast.ID(fmt.Sprint("g", i))); r.Status != notify.Delivered {
				t.Fatalf("g%d is %s", i, r.Status)
			}
		}
	})
}

// NO-10: settings that are below zero become ten attempts, a minute apart, and
// are named in a warning.
func TestSettingsThatAreBelowZero(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Retry: notify.Retry{Attempts: -1, Interval: -time.Second}})
		o.list(t, "ops", mailTo("a@x")...)
		o.mail.become(by(map[string]notify.Delivery{"a@x": greylisted}))
		stop := o.run(t)
		defer stop()
		o.sent(t, "ops", "n")
		time.Sleep(8*time.Minute + 30*time.Second)
		if r := o.one(t, "n"); r.Failures != 9 || r.Status != notify.Retrying {
			t.Errorf("after 8.5 minutes it is %s with %d failures, want 9", r.Status, r.Failures)
		}
		time.Sleep(time.Minute)
		if r := o.one(t, "n"); r.Failures != 10 || r.Status != notify.Parked || r.Reason != holdfast.ReasonExhausted {
			t.Errorf("after 9.5 minutes it is %s, %s, with %d failures, want 10", r.Status, r.Reason, r.Failures)
		}
		for _, setting := range []string{"retry.attempts", "retry.interval"} {
			if !o.log.has("WARN setting is not above zero: the default is used channel=mail setting=" + setting) {
				t.Errorf("no warning names %s", setting)
			}
		}
	})
}

// NO-10: a channel that says nothing of it tries so without a word.
func TestSettingsThatAreNotSaidAreNotWarnedOf(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		if err := nodestore.New(o.db, nil).Directory.PutChannel(t.Context(), notify.Channel{Name: "mail", Kind: "mail"}, ""); err != nil {
			t.Fatal(err)
		}
		o.list(t, "ops", mailTo("a@x")...)
		o.mail.become(by(map[string]notify.Delivery{"a@x": greylisted}))
		stop := o.run(t)
		defer stop()
		o.sent(t, "ops", "n")
		if err := o.channels.Resume(t.Context(), "mail"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9*time.Minute + 30*time.Second)
		if r := o.one(t, "n"); r.Failures != 10 || r.Status != notify.Parked {
			t.Errorf("after 9.5 minutes it is %s with %d failures, want parked with 10", r.Status, r.Failures)
		}
		if o.log.has("not above zero") {
			t.Error("a warning names what nobody has set")
		}
	})
}

// NO-07: a kind without an adapter parks with that reason.
func TestAKindWithoutAnAdapterParks(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "pigeon"})
		o.list(t, "ops", mailTo("a@x")...)
		stop := o.run(t)
		defer stop()
		o.sent(t, "ops", "n")
		time.Sleep(time.Second)
		if r := o.one(t, "n"); r.Status != notify.Parked || r.History[len(r.History)-1].Code != "no_adapter" {
			t.Errorf("it is %s: %s", r.Status, r.LastError)
		}
	})
}

// E13, E20: the other side's wait is a minimum.
func TestTheOtherSidesWaitIsKept(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		later := greylisted
		later.RetryAfter = 300 * time.Second
		o.mail.become(by(map[string]notify.Delivery{"a@x": later}))
		stop := o.run(t)
		defer stop()
		o.sent(t, "ops", "n")
		time.Sleep(290 * time.Second)
		if n := len(o.mail.asked()); n != 1 {
			t.Errorf("asked %d times within 290 s", n)
		}
		time.Sleep(30 * time.Second)
		if n := len(o.mail.asked()); n != 2 {
			t.Errorf("asked %d times within 320 s", n)
		}
	})
}

// NO-12: a stop cuts off what is slow, records no outcome for it, and does not
// wait for an hour.
func TestAStopCutsOffWhatIsSlow(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		o.mail.become(func(ctx context.Context, _ []notify.Recipient) notify.Report {
			<-ctx.Done()
			return notify.Report{Fault: &holdfast.Failure{Outcome: holdfast.NotStarted, Err: ctx.Err()}}
		})
		stop := o.run(t)
		o.sent(t, "ops", "n")
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the stop took %s", took)
		}
		if r := o.one(t, "n"); r.Status != notify.Pending || len(r.Targets) != 0 {
			t.Errorf("it is %s, with recipients %v", r.Status, r.Targets)
		}
	})
}

// Test sends once, and keeps nothing.
func TestAChannelCanBeTried(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		report, err := o.channels.Test(t.Context(), "mail", "a@x")
		if err != nil || len(report.To) != 1 || report.To[0].Outcome != notify.Accepted {
			t.Errorf("got %+v, %v", report, err)
		}
		if _, err := o.channels.Test(t.Context(), "mail", "nobody"); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("for an address that is none: %v", err)
		}
		if _, err := o.channels.Test(t.Context(), "fax", "a@x"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("for a channel that is none: %v", err)
		}
		if p, err := o.db.Notifications(t.Context(), notify.Query{}); err != nil || len(p.Records) != 0 {
			t.Errorf("kept %v, %v", p.Records, err)
		}
	})
}

// E14: a channel that a person resumes goes on at once, with all its workers and not
// with a probe, and the log says so. Resume waits a second for what is in hand.
func TestAResumedChannelGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		resume := func(name string, want error, takes time.Duration) {
			t.Helper()
			began := time.Now()
			if err := o.channels.Resume(t.Context(), name); !errors.Is(err, want) || time.Since(began) != takes {
				t.Errorf("got %v after %s, want %v after %s", err, time.Since(began), want, takes)
			}
		}
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.channel(t, notify.Channel{Name: "off", Kind: "mail", Disabled: true})
		resume("mail", nil, 0) // nothing runs yet
		o.list(t, "ops", mailTo("a@x")...)
		o.mail.become(fault(errPassword))
		stop := o.run(t)
		defer stop()
		for i := range 40 {
			o.sent(t, "ops", holdfast.ID(fmt.Sprint("n", i)))
		}
		time.Sleep(10*time.Minute + 10*time.Second)
		synctest.Wait()
		resume("off", holdfast.ErrState, 0)
		resume("none", holdfast.ErrNotFound, 0)
		if s := o.channels.Status()["mail"]; !s.Held || o.log.has("channel resumed") {
			t.Fatalf("the channel is not held: %+v", s)
		}
		o.mail.become(func(_ context.Context, to []notify.Recipient) notify.Report {
			time.Sleep(10 * time.Second)
			return accept(to)
		})
		resume("mail", nil, 0)
		time.Sleep(500 * time.Millisecond)
		if s := o.channels.Status()["mail"]; s.Held || s.InFlight != notify.DefaultWorkers || !o.log.has("INFO channel resumed channel=mail") {
			t.Errorf("it is resumed, and has %d deliveries in hand, want %d: %+v", s.InFlight, notify.DefaultWorkers, s)
		}
		resume("mail", nil, time.Second) // it has deliveries in hand
		time.Sleep(12 * time.Second)     // and others now
		soon, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer leave()
		began := time.Now()
		if err := o.channels.Resume(soon, "mail"); err != nil || time.Since(began) != 300*time.Millisecond {
			t.Errorf("who goes after 300 ms waited %s: %v", time.Since(began), err)
		}
		if err := o.channels.Resume(soon, "mail"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who is gone got %v", err)
		}
		time.Sleep(10 * time.Minute)
		for i := range 40 {
			if r := o.one(t, holdfast.ID(fmt.Sprint("n", i))); r.Status != notify.Delivered {
				t.Errorf("n%d is %s", i, r.Status)
			}
		}
	})
}
