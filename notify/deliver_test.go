package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
)

// E2: the next attempt asks only those who have not accepted, whatever the
// order of the answers.
func TestOnlyThoseWhoHaveNotAcceptedAreAskedAgain(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"a@x", "grey@x", "gone@x"}, {"gone@x", "grey@x", "a@x"}} {
		racetest.Bubble(t, func(t *testing.T) {
			o := open(t)
			defer o.close(t)
			o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
			o.list(t, "ops", mailTo(order...)...)
			o.mail.become(by(map[string]notify.Delivery{"grey@x": greylisted, "gone@x": unknown}))
			stop := o.run(t)
			defer stop()
			o.sent(t, "ops", "n")
			time.Sleep(30 * time.Second)
			if r := o.one(t, "n"); r.Status != notify.Retrying || r.Failures != 1 || strings.Contains(r.LastError, "grey@x") {
				t.Errorf("after the first attempt it is %s with %d failures: %s", r.Status, r.Failures, r.LastError)
			}
			o.mail.become(nil)
			time.Sleep(2 * time.Minute)
			if diff := cmp.Diff([][]string{order, {"grey@x"}}, o.mail.asked()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			r := o.one(t, "n")
			if r.Status != notify.Parked || r.Reason != holdfast.ReasonPermanent {
				t.Errorf("with one refused for good it is %s, %s", r.Status, r.Reason)
			}
			want := map[string]notify.Result{"a@x": notify.Accepted, "grey@x": notify.Accepted, "gone@x": notify.Refused}
			if diff := cmp.Diff(want, results(r)); diff != "" {
				t.Errorf("recipients (-want +got):\n%s", diff)
			}
			// A person's retry asks whoever refused, and nobody who accepted.
			if _, err := o.db.Requeue(t.Context(), r.Message, holdfast.Requeue{Actor: "kim"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if r := o.one(t, "n"); r.Status != notify.Delivered {
				t.Errorf("after the retry it is %s: %s", r.Status, r.LastError)
			}
			if asked := o.mail.asked(); len(asked) != 3 || !cmp.Equal(asked[2], []string{"gone@x"}) {
				t.Errorf("asked %v", asked)
			}
		})
	}
}

// A list may say that some refusals are no reason to park.
func TestPartialDelivery(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		for name, addresses := range map[string][]string{"some": {"a@x", "gone@x"}, "none": {"gone@x"}} {
			if err := nodestore.New(o.db, nil).Directory.PutList(t.Context(), notify.List{Name: name, Partial: true, Recipients: mailTo(addresses...)}, ""); err != nil {
				t.Fatal(err)
			}
		}
		o.mail.become(by(map[string]notify.Delivery{"gone@x": unknown}))
		stop := o.run(t)
		defer stop()
		o.sent(t, "some", "s")
		o.sent(t, "none", "n")
		time.Sleep(time.Minute)
		if r := o.one(t, "s"); r.Status != notify.Delivered {
			t.Errorf("with one of two refused it is %s", r.Status)
		}
		if r := o.one(t, "n"); r.Status != notify.Parked {
			t.Errorf("with all refused it is %s", r.Status)
		}
	})
}

// E54: a list that does not exist, is empty or has nobody enabled parks at
// once, with the reason and without asking anybody; it is delivered by a retry
// after the list was made.
func TestAListThatLeadsNowhereParksAtOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "empty")
		o.list(t, "disabled", notify.Recipient{Channel: "mail", Address: "a@x", Disabled: true})
		o.list(t, "astray", notify.Recipient{Channel: "pigeon", Address: "a@x"})
		stop := o.run(t)
		defer stop()
		for list, code := range map[string]string{"missing": "no_list", "empty": "no_recipients", "disabled": "no_recipients", "astray": "no_channel"} {
			o.sent(t, list, holdfast.ID(list))
			time.Sleep(time.Second)
			r := o.one(t, holdfast.ID(list))
			if r.Status != notify.Parked || r.Tries != 1 || len(r.History) == 0 || r.History[len(r.History)-1].Code != code {
				t.Errorf("%s: %s after %d tries: %s %v", list, r.Status, r.Tries, r.LastError, r.History)
			}
		}
		if n := len(o.mail.asked()); n != 0 {
			t.Errorf("the adapter was asked %d times", n)
		}
		o.list(t, "missing", mailTo("a@x")...)
		if _, err := o.db.Requeue(t.Context(), first("missing"), holdfast.Requeue{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if r := o.one(t, "missing"); r.Status != notify.Delivered {
			t.Errorf("after the list was made it is %s: %s", r.Status, r.LastError)
		}
	})
}

// E14, NO-09: credentials that are refused hold the channel, charge no
// notification and park none; Resume goes on at once.
func TestAFaultOfTheChannelHoldsItAndChargesNobody(t *testing.T) {
	t.Parallel()
	faults := map[string]func(o *office){
		"credentials": func(o *office) { o.mail.become(fault(errPassword)) },
		"settings":    func(o *office) { o.mail.invalid = errors.New("host: must not be empty") },
	}
	for name, spoil := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				o := open(t)
				defer o.close(t)
				o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
				o.list(t, "ops", mailTo("a@x")...)
				spoil(o)
				stop := o.run(t)
				defer stop()
				for i := range 50 {
					o.sent(t, "ops", holdfast.ID(fmt.Sprint("n", i)))
				}
				time.Sleep(time.Hour)
				if s := o.channels.Status()["mail"]; !s.Held || s.Problem == "" {
					t.Errorf("the channel is not held: %+v", s)
				}
				for i := range 50 {
					if r := o.one(t, holdfast.ID(fmt.Sprint("n", i))); r.Failures != 0 || r.Status == notify.Parked {
						t.Errorf("n%d: %s with %d failures", i, r.Status, r.Failures)
					}
				}
				o.mail.mu.Lock()
				o.mail.invalid, o.mail.answer = nil, nil
				o.mail.mu.Unlock()
				if err := o.channels.Resume(t.Context(), "mail"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(70 * time.Second) // those that probed it wait for their interval
				for i := range 50 {
					if r := o.one(t, holdfast.ID(fmt.Sprint("n", i))); r.Status != notify.Delivered {
						t.Errorf("after Resume n%d is %s", i, r.Status)
					}
				}
			})
		})
	}
}

// E61: of a list over two channels only what failed is tried again, and a
// channel that is away holds up nothing of the other.
func TestChannelsOfOneListAreApart(t *testing.T) {
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
		o.sent(t, "ops", "n")
		time.Sleep(time.Minute)
		status := map[string]notify.Status{}
		for _, c := range o.copies(t, "n") {
			status[c.Channel] = c.Status
		}
		if diff := cmp.Diff(map[string]notify.Status{"mail": notify.Delivered, "room": notify.Retrying}, status); diff != "" {
			t.Errorf("copies (-want +got):\n%s", diff)
		}
		o.chat.become(nil)
		time.Sleep(time.Hour)
		for _, c := range o.copies(t, "n") {
			if c.Status != notify.Delivered || c.Notification.ID != "n" {
				t.Errorf("%s over %s: %s", c.Notification.ID, c.Channel, c.Status)
			}
		}
		if n := len(o.mail.asked()); n != 1 {
			t.Errorf("%d mails were sent", n)
		}
		synctest.Wait() // the courier has let go of what is read here
		for _, id := range append(o.mail.ids, o.chat.ids...) {
			if id != "n" {
				t.Errorf("an adapter was given the id %s", id)
			}
		}
	})
}

// A recipient who was put on the list over another channel after the
// notification came is reached too (NO-06).
func TestAListIsReadWhenItIsDelivered(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.channel(t, notify.Channel{Name: "room", Kind: "chat"})
		o.list(t, "ops", mailTo("old@x")...)
		o.sent(t, "ops", "n")
		o.list(t, "ops", append(mailTo("new@x"), notify.Recipient{Channel: "room", Address: "r"})...)
		time.Sleep(2 * time.Second)
		stop := o.run(t)
		defer stop()
		time.Sleep(time.Minute)
		r := o.one(t, "n")
		want := map[string]notify.Result{"new@x": notify.Accepted, "r": notify.Accepted}
		if diff := cmp.Diff(want, results(r)); diff != "" || r.Status != notify.Delivered {
			t.Errorf("%s, recipients (-want +got):\n%s", r.Status, diff)
		}
	})
}

// Of a notification that goes over two channels, what came onto its list over a third
// one meanwhile is reached once: by the first copy.
func TestAChannelThatCameOntoTheListIsTheFirstCopys(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.channel(t, notify.Channel{Name: "room", Kind: "chat"})
		o.channel(t, notify.Channel{Name: "another", Kind: "chat"})
		before := append(mailTo("a@x"), notify.Recipient{Channel: "room", Address: "r"})
		o.list(t, "ops", before...)
		o.sent(t, "ops", "n")
		o.list(t, "ops", append(before, notify.Recipient{Channel: "another", Address: "new"})...)
		time.Sleep(2 * time.Second)
		stop := o.run(t)
		defer stop()
		time.Sleep(time.Minute)
		got := map[string]map[string]notify.Result{}
		for _, c := range o.copies(t, "n") {
			got[c.Channel] = results(c)
		}
		want := map[string]map[string]notify.Result{"mail": {"a@x": notify.Accepted, "new": notify.Accepted}, "room": {"r": notify.Accepted}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("copies and recipients (-want +got):\n%s", diff)
		}
	})
}

// NO-06: who mends a list and retries at once is not answered from the
// list as it was.
func TestARetryOfAPersonReadsTheListAnew(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("gone@x")...)
		o.mail.become(func(_ context.Context, to []notify.Recipient) (r notify.Report) {
			for _, p := range to {
				d := notify.Delivery{Outcome: notify.Accepted}
				if p.Address == "gone@x" {
					d = notify.Delivery{Outcome: notify.Refused, Code: "550 5.1.1"}
				}
				r.To = append(r.To, d)
			}
			return r
		})
		stop := o.run(t)
		defer stop()
		for _, id := range []holdfast.ID{"a", "b"} {
			o.sent(t, "ops", id)
		}
		time.Sleep(time.Minute)
		requeue := func(id holdfast.ID) {
			if _, err := o.db.Requeue(t.Context(), first(id), holdfast.Requeue{Actor: "kim"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond)
		}
		requeue("a") // the directory was just read
		o.list(t, "ops", mailTo("new@x")...)
		requeue("b")
		if r := o.one(t, "a"); r.Status != notify.Parked || r.Cycle != 2 {
			t.Fatalf("before the list was mended it is %s in cycle %d", r.Status, r.Cycle)
		}
		if r := o.one(t, "b"); r.Status != notify.Delivered {
			t.Errorf("after the list was mended it is %s: %s", r.Status, r.LastError)
		}
	})
}

// unsettled is a store whose node dies after each attempt, before its outcome
// is written.
type unsettled struct {
	holdfast.Store
	gone atomic.Bool // the process has ended, too
}

func (u *unsettled) Settle(context.Context, ...holdfast.Settlement) ([]bool, error) {
	if u.gone.Load() {
		return nil, holdfast.ErrClosed
	}
	return nil, errors.New("the node has died")
}

// die runs the channels for a moment in a node that dies before any outcome is
// recorded, and opens the store again.
func (o *office) die(t *testing.T) {
	t.Helper()
	dying := &unsettled{Store: o.db}
	o.attach(dying)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runBoth(ctx, o.channels) }()
	time.Sleep(5 * time.Second)
	cancel()
	if err := <-ended; err == nil {
		t.Error("the outcomes were recorded: this tests nothing")
	}
	dying.gone.Store(true)
	o.reopen(t)
}

// NO-19, NO-20: what a recipient has accepted is known after a crash between
// that and the outcome of the notification.
func TestACrashAfterAcceptanceAsksNobodyTwice(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x", "b@x")...)
		o.mail.become(by(map[string]notify.Delivery{"b@x": greylisted}))
		o.sent(t, "ops", "n")
		o.die(t)
		o.attach(o.db)
		o.mail.become(nil)
		stop := o.run(t)
		defer stop()
		time.Sleep(time.Minute)
		if r := o.one(t, "n"); r.Status != notify.Delivered {
			t.Errorf("it is %s", r.Status)
		}
		if diff := cmp.Diff([][]string{{"a@x", "b@x"}, {"b@x"}}, o.mail.asked()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}
