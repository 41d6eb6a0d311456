package notify_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// gaining is an office whose list gains jane, by pager, while a notification by
// chat and mail waits.
type gaining struct {
	*office
	pager *script
}

func (g *gaining) begin(t *testing.T, chat, mail *holdfast.Failure) (stop func()) {
	t.Helper()
	g.pager = &script{}
	g.pager.become(func(_ context.Context, to []notify.Recipient) notify.Report {
		time.Sleep(5 * time.Second) // all who would ask do so by then
		return accept(to)
	})
	g.channels.Kinds["pager"] = notify.Kind{New: g.pager.open}
	for _, kind := range []string{"chat", "mail", "pager"} {
		g.channel(t, notify.Channel{Name: kind, Kind: kind})
	}
	if chat != nil {
		g.chat.become(fault(chat))
	}
	if mail != nil {
		g.mail.become(fault(mail))
	}
	people := []notify.Recipient{{Channel: "chat", Address: "room"}, {Channel: "mail", Address: "a@x"}}
	g.list(t, "ops", people...)
	stop = g.run(t)
	g.sent(t, "ops", "n")
	time.Sleep(5 * time.Second)
	g.list(t, "ops", append(people, notify.Recipient{Channel: "pager", Address: "jane"})...)
	return stop
}

// ended says how the copies of the notification stand.
func (g *gaining) ended(t *testing.T) map[string]notify.Status {
	t.Helper()
	records, err := g.db.Notification(t.Context(), "plant-7", "n")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]notify.Status{}
	for _, r := range records {
		all[r.Channel] = r.Status
	}
	return all
}

// F1-72, NO-06: whom a list gains on another channel while a copy waits is asked
// by a copy that waits, whichever it is, and once.
func TestWhoIsAddedOnAnotherChannelIsAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ chat, mail *holdfast.Failure }{
		"the first waits": {errAway, nil}, "the other waits": {nil, errAway}, "both wait": {errAway, errAway},
	} {
		racetest.Bubble(t, func(t *testing.T) {
			g := &gaining{office: open(t)}
			defer g.close(t)
			stop := g.begin(t, c.chat, c.mail)
			defer stop()
			time.Sleep(5 * time.Minute)
			g.chat.become(nil)
			g.mail.become(nil)
			time.Sleep(10 * time.Minute)
			if diff := cmp.Diff(map[string]notify.Status{"chat": notify.Delivered, "mail": notify.Delivered}, g.ended(t)); diff != "" {
				t.Errorf("%s: copies (-want +got):\n%s", name, diff)
			}
			if diff := cmp.Diff([][]string{{"jane"}}, g.pager.asked()); diff != "" {
				t.Errorf("%s: asked (-want +got):\n%s", name, diff)
			}
		})
	}
}

// F1-72: a copy that waits for a person keeps nobody from being asked by another,
// and asks nobody again when it is retried.
func TestARetriedCopyAsksNobodyAgain(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		g := &gaining{office: open(t)}
		defer g.close(t)
		stop := g.begin(t, &holdfast.Failure{Outcome: holdfast.Permanent, Code: "http_404"}, errAway)
		defer stop()
		g.mail.become(nil)
		time.Sleep(10 * time.Minute)
		if diff := cmp.Diff(map[string]notify.Status{"chat": notify.Parked, "mail": notify.Delivered}, g.ended(t)); diff != "" {
			t.Errorf("copies (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([][]string{{"jane"}}, g.pager.asked()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		g.chat.become(nil)
		if _, err := g.db.Requeue(t.Context(), first("n"), holdfast.Requeue{Actor: "kim"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := g.ended(t)["chat"]; got != notify.Delivered || len(g.pager.asked()) != 1 {
			t.Errorf("the retried copy is %s, asked %v", got, g.pager.asked())
		}
	})
}

// F1-72, NO-06: who was gained and refused one copy is not asked by the next one in the
// same cycle; a person's retry asks again, and once.
func TestARefusalOfWhoWasGainedCountsForAllCopies(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		g := &gaining{office: open(t)}
		defer g.close(t)
		defer g.begin(t, errAway, errAway)()
		g.pager.become(by(map[string]notify.Delivery{"jane": unknown}))
		g.chat.become(nil)
		time.Sleep(10 * time.Minute)
		if diff := cmp.Diff(map[string]notify.Status{"chat": notify.Parked, "mail": notify.Retrying}, g.ended(t)); diff != "" {
			t.Errorf("before mail works, copies (-want +got):\n%s", diff)
		}
		g.mail.become(nil)
		time.Sleep(10 * time.Minute)
		if diff := cmp.Diff(map[string]notify.Status{"chat": notify.Parked, "mail": notify.Parked}, g.ended(t)); diff != "" {
			t.Errorf("copies (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([][]string{{"jane"}}, g.pager.asked()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		g.pager.become(nil)
		for _, c := range g.copies(t, "n") { // the other one finds that she has accepted
			if _, err := g.db.Requeue(t.Context(), c.Message, holdfast.Requeue{Actor: "kim"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if diff := cmp.Diff(map[string]notify.Status{"chat": notify.Delivered, "mail": notify.Delivered}, g.ended(t)); diff != "" {
			t.Errorf("after a retry, copies (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([][]string{{"jane"}, {"jane"}}, g.pager.asked()); diff != "" {
			t.Errorf("after a retry, asked (-want +got):\n%s", diff)
		}
	})
}

// slow is a side that accepts after a while.
func slow(d time.Duration) func(context.Context, []notify.Recipient) notify.Report {
	return func(_ context.Context, to []notify.Recipient) notify.Report {
		time.Sleep(d)
		return accept(to)
	}
}

// F1-72, NO-06: a list gains a channel while the last copies are all under way:
// whichever ends last sees it, and asks once.
func TestWhoIsAddedWhileAllCopiesAreUnderWayIsAsked(t *testing.T) {
	t.Parallel()
	for name, took := range map[string]struct{ chat, mail time.Duration }{
		"the first ends first": {10 * time.Second, 20 * time.Second}, "the other ends first": {20 * time.Second, 10 * time.Second},
		"both end at once": {20 * time.Second, 20 * time.Second}, "the first had ended": {time.Second, 20 * time.Second},
	} {
		racetest.Bubble(t, func(t *testing.T) {
			g := &gaining{office: open(t)}
			defer g.close(t)
			g.chat.become(slow(took.chat))
			g.mail.become(slow(took.mail))
			defer g.begin(t, nil, nil)()
			time.Sleep(10 * time.Minute)
			if diff := cmp.Diff(map[string]notify.Status{"chat": notify.Delivered, "mail": notify.Delivered}, g.ended(t)); diff != "" {
				t.Errorf("%s: copies (-want +got):\n%s", name, diff)
			}
			for who, s := range map[string]*script{"room": g.chat, "a@x": g.mail, "jane": g.pager} {
				if diff := cmp.Diff([][]string{{who}}, s.asked()); diff != "" {
					t.Errorf("%s: asked (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// lateSettle is a store that takes its time for the first end that it is to write.
type lateSettle struct {
	holdfast.Store
	begun atomic.Bool
}

func (s *lateSettle) Settle(ctx context.Context, ends ...holdfast.Settlement) ([]bool, error) {
	if s.begun.CompareAndSwap(false, true) {
		time.Sleep(20 * time.Second)
	}
	return s.Store.Settle(ctx, ends...)
}

// F1-72: the list gains the channel after one copy has looked for the last time,
// and before its end is on disk: the other one, which sees both, waits for that.
func TestACopyWaitsForOneThatHasLookedForTheLastTime(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		g := &gaining{office: open(t)}
		defer g.close(t)
		g.attach(&lateSettle{Store: g.db})
		g.mail.become(slow(10 * time.Second))
		defer g.begin(t, nil, nil)()
		time.Sleep(10 * time.Minute)
		if diff := cmp.Diff(map[string]notify.Status{"chat": notify.Delivered, "mail": notify.Delivered}, g.ended(t)); diff != "" {
			t.Errorf("copies (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([][]string{{"jane"}}, g.pager.asked()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

// NO-06: who comes onto the list of a notification's only copy while that is under
// way is asked, too.
func TestWhoIsAddedWhileTheOnlyCopyIsUnderWayIsAsked(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.mail.become(slow(10 * time.Second))
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		defer o.run(t)()
		o.sent(t, "ops", "n")
		time.Sleep(5 * time.Second)
		o.list(t, "ops", mailTo("a@x", "b@x")...)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([][]string{{"a@x"}, {"b@x"}}, o.mail.asked()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		if got := o.one(t, "n"); got.Status != notify.Delivered || got.Tries != 1 {
			t.Errorf("the copy is %s after %d tries", got.Status, got.Tries)
		}
	})
}
