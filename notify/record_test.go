package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// forgetful is a store that cannot write what became of recipients, so many
// times.
type forgetful struct {
	notify.Store
	err   error
	fails atomic.Int64 // negative: always
	calls atomic.Int64
}

func (s *forgetful) RecordTargets(ctx context.Context, id holdfast.ID, list ...notify.Target) error {
	s.calls.Add(1)
	if n := s.fails.Load(); n != 0 {
		s.fails.Add(-1)
		return s.err
	}
	return s.Store.RecordTargets(ctx, id, list...)
}

// NO-19: a write that fails sends no mail twice: what was accepted is recorded
// when the store can, also after the time of the attempt is over.
func TestARecordThatFailsAsksNobodyTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails int64
		after time.Duration
	}{"once": {1, time.Minute}, "for minutes": {200, 10 * time.Minute}, "for longer than an attempt": {2000, 80 * time.Minute}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				o := open(t)
				defer o.close(t)
				s := &forgetful{Store: o.db, err: holdfast.ErrUnavailable}
				s.fails.Store(c.fails)
				o.channels.Store = s
				o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
				o.list(t, "ops", mailTo("a@x", "b@x")...)
				stop := o.run(t)
				defer stop()
				o.sent(t, "ops", "n")
				time.Sleep(c.after)
				if diff := cmp.Diff([][]string{{"a@x", "b@x"}}, o.mail.asked()); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				if r := o.one(t, "n"); r.Status != notify.Delivered {
					t.Errorf("it is %s after %d failures: %s", r.Status, r.Failures, r.LastError)
				}
			})
		})
	}
}

// NO-19: what an attempt could not write down is written before the next one, once:
// how often each recipient was asked stays right. The store is asked again after 50 ms,
// then after twice as long each time, up to two seconds.
func TestWhatCouldNotBeRecordedIsKnownAtTheNextAttempt(t *testing.T) {
	t.Parallel()
	for name, to := range map[string][]string{"two": {"grey@x", "a@x"}, "one": {"grey@x"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				o := open(t)
				defer o.close(t)
				s := &forgetful{Store: o.db, err: holdfast.ErrUnavailable}
				s.fails.Store(2000) // more than an hour, which is an attempt's time
				o.channels.Store = s
				o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
				o.list(t, "ops", mailTo(to...)...)
				o.mail.become(by(map[string]notify.Delivery{"grey@x": greylisted}))
				stop := o.run(t)
				defer stop()
				o.sent(t, "ops", "n")
				time.Sleep(time.Minute)
				if n := s.calls.Load(); n != 35 {
					t.Errorf("the store was asked %d times in a minute, want 35", n)
				}
				time.Sleep(72 * time.Minute)
				o.mail.become(nil)
				time.Sleep(2 * time.Minute)
				rounds := o.mail.asked()
				want := [][]string{to}
				for len(want) < max(len(rounds), 3) {
					want = append(want, []string{"grey@x"})
				}
				if diff := cmp.Diff(want, rounds); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
				r := o.one(t, "n")
				if r.Status != notify.Delivered || len(r.Targets) != len(to) {
					t.Errorf("it is %s, with %d recipients", r.Status, len(r.Targets))
				}
				for _, target := range r.Targets {
					if want := map[string]int{"a@x": 1, "grey@x": len(rounds)}[target.Address]; target.Attempts != want {
						t.Errorf("%s is down as asked %d times, want %d", target.Address, target.Attempts, want)
					}
				}
			})
		})
	}
}

// A store that will never take a record is not asked for it again: the attempt has
// failed, and is charged, so that people are not asked without end.
func TestARecordThatIsRefusedEndsTheAttempt(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{holdfast.ErrInvalid, holdfast.ErrNotFound} {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				o := open(t)
				defer o.close(t)
				s := &forgetful{Store: o.db, err: cause}
				s.fails.Store(-1)
				o.channels.Store = s
				o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Retry: notify.Retry{Attempts: 3, Interval: time.Minute}})
				o.list(t, "ops", mailTo("a@x")...)
				stop := o.run(t)
				defer stop()
				o.sent(t, "ops", "n")
				time.Sleep(30 * time.Second)
				r := o.one(t, "n")
				last := r.History[len(r.History)-1]
				if r.Failures != 1 || s.calls.Load() != 1 || last.Code != "not_recorded" || !last.Maybe {
					t.Errorf("after an attempt: %d failures, %d calls of the store, %+v", r.Failures, s.calls.Load(), last)
				}
				time.Sleep(time.Hour)
				if r := o.one(t, "n"); r.Status != notify.Parked || len(o.mail.asked()) != 3 {
					t.Errorf("it is %s, and was sent %d times, want parked after 3", r.Status, len(o.mail.asked()))
				}
			})
		})
	}
}

// refusing is a store that cannot write for a while, then refuses a record for good,
// and works from then on.
type refusing struct {
	notify.Store
	until   time.Time
	refused atomic.Bool
}

func (s *refusing) RecordTargets(ctx context.Context, id holdfast.ID, list ...notify.Target) error {
	switch {
	case time.Now().Before(s.until):
		return holdfast.ErrUnavailable
	case !s.refused.Swap(true):
		return holdfast.ErrInvalid
	}
	return s.Store.RecordTargets(ctx, id, list...)
}

// Nor is anybody asked by the attempt that finds that the record of the one before is
// refused: it has failed, and may have been delivered.
func TestARecordThatIsRefusedLaterEndsTheNextAttempt(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channels.Store = &refusing{Store: o.db, until: time.Now().Add(time.Hour)} // an attempt's time
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		stop := o.run(t)
		defer stop()
		o.sent(t, "ops", "n")
		time.Sleep(time.Hour + 30*time.Second)
		r := o.one(t, "n")
		if last := r.History[len(r.History)-1]; r.Failures != 1 || last.Code != "not_recorded" || !last.Maybe || len(o.mail.asked()) != 1 {
			t.Errorf("after two attempts: %d failures, asked %v, %+v", r.Failures, o.mail.asked(), last)
		}
		time.Sleep(time.Minute)
		if r := o.one(t, "n"); r.Status != notify.Delivered || len(o.mail.asked()) != 2 {
			t.Errorf("it is %s, asked %v; want it delivered by the third attempt", r.Status, o.mail.asked())
		}
	})
}

// Nor does it where the channel's settings are changed meanwhile, which ends its
// dispatcher.
func TestARecordOutlivesAChangeOfSettings(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		s := &forgetful{Store: o.db, err: holdfast.ErrUnavailable}
		s.fails.Store(60)
		o.channels.Store = s
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x", "b@x")...)
		stop := o.run(t)
		defer stop()
		o.sent(t, "ops", "n")
		time.Sleep(5 * time.Second)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail", Workers: 2})
		time.Sleep(10 * time.Minute)
		if diff := cmp.Diff([][]string{{"a@x", "b@x"}}, o.mail.asked()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		if r := o.one(t, "n"); r.Status != notify.Delivered || s.fails.Load() != 0 {
			t.Errorf("it is %s, and %d failures are left", r.Status, s.fails.Load())
		}
	})
}

// A store that has stopped is not asked again, and one that stays away does not
// keep a node from stopping.
func TestARecordEndsWithTheStoreAndTheNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		most int64
	}{
		"closed": {fmt.Errorf("record: %w", holdfast.ErrClosed), 1},
		"away":   {errors.New("disk I/O error"), 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				o := open(t)
				defer o.close(t)
				s := &forgetful{Store: o.db, err: c.err}
				s.fails.Store(-1)
				o.channels.Store = s
				o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
				o.list(t, "ops", mailTo("a@x")...)
				stop := o.run(t)
				o.sent(t, "ops", "n")
				time.Sleep(20 * time.Second)
				began := time.Now()
				stop()
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("the stop took %s", took)
				}
				if n := s.calls.Load(); n == 0 || n > c.most {
					t.Errorf("the store was asked %d times", n)
				}
				if n := len(o.mail.asked()); n != 1 {
					t.Errorf("%d mails were sent", n)
				}
			})
		})
	}
}

// NO-19, NO-20: whoever dies in the middle of a long list asks only the rest
// again, each part of which is on disk before the next begins.
func TestADeathInALongListAsksOnlyTheRest(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		var everybody []string
		for i := range 100 {
			everybody = append(everybody, fmt.Sprintf("r%02d@x", i))
		}
		o.list(t, "ops", mailTo(everybody...)...)
		db := o.db
		o.mail.parts = func(ctx context.Context, to []notify.Recipient, known func(notify.Part) bool) notify.Report {
			for batch := range 3 {
				ends := map[int]notify.Delivery{}
				for i := range 10 {
					ends[10*batch+i] = notify.Delivery{Outcome: notify.Accepted, Receipt: "queued"}
				}
				if !known(notify.Part{Ends: ends, Server: "mail.x"}) {
					t.Error("the part was not taken")
				}
				if list, err := db.Targets(ctx, first("n")); err != nil || len(list) != 10*(batch+1) {
					t.Errorf("after part %d, %d recipients are on disk: %v", batch+1, len(list), err)
				}
			}
			<-ctx.Done()
			return notify.Report{To: make([]notify.Delivery, len(to)), Fault: &holdfast.Failure{Outcome: holdfast.NotStarted, Err: ctx.Err()}}
		}
		o.sent(t, "ops", "n")
		o.die(t)
		o.attach(o.db)
		o.mail.parts = nil
		stop := o.run(t)
		defer stop()
		time.Sleep(time.Minute)
		if diff := cmp.Diff([][]string{everybody, everybody[30:]}, o.mail.asked()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		r := o.one(t, "n")
		if r.Status != notify.Delivered {
			t.Errorf("it is %s: %s", r.Status, r.LastError)
		}
		for _, target := range r.Targets {
			if target.Attempts != 1 {
				t.Errorf("%s was asked %d times", target.Address, target.Attempts)
			}
		}
	})
}

// survivor is the store of a node that takes over what a dead one had in hand.
type survivor struct{ holdfast.Store }

func (s survivor) Claim(ctx context.Context, want map[string]int) (holdfast.Batch, error) {
	b, err := s.Store.Claim(ctx, want)
	for i := range b.Claims {
		b.Claims[i].Message.Attempt.Number++ // the dead node's counts
	}
	return b, err
}

// A person's retry asks whoever refused before, also when the node dies in the
// middle of it; whoever has refused since is not asked once more.
func TestARetryThatANodesDeathCutsOffAsksThoseWhoRefused(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x", "b@x")...)
		o.mail.become(by(map[string]notify.Delivery{"a@x": unknown, "b@x": unknown}))
		stop := o.run(t)
		o.sent(t, "ops", "n")
		time.Sleep(10 * time.Second)
		stop()
		if r := o.one(t, "n"); r.Status != notify.Parked {
			t.Fatalf("it is %s", r.Status)
		}
		if _, err := o.db.Requeue(t.Context(), first("n"), holdfast.Requeue{Actor: "kim"}); err != nil {
			t.Fatal(err)
		}
		o.mail.parts = func(ctx context.Context, to []notify.Recipient, known func(notify.Part) bool) notify.Report {
			known(notify.Part{Ends: map[int]notify.Delivery{0: unknown}})
			<-ctx.Done()
			return notify.Report{To: make([]notify.Delivery, len(to)), Fault: &holdfast.Failure{Outcome: holdfast.NotStarted, Err: ctx.Err()}}
		}
		o.die(t)
		o.attach(survivor{o.db})
		o.mail.parts = nil
		o.mail.become(nil)
		stop = o.run(t)
		defer stop()
		time.Sleep(time.Minute)
		if diff := cmp.Diff([][]string{{"a@x", "b@x"}, {"a@x", "b@x"}, {"b@x"}}, o.mail.asked()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		r := o.one(t, "n")
		if diff := cmp.Diff(map[string]notify.Result{"a@x": notify.Refused, "b@x": notify.Accepted}, results(r)); diff != "" {
			t.Errorf("recipients (-want +got):\n%s", diff)
		}
	})
}

// F1-70: the code of a fault stands once beside each recipient whom it concerns, and
// once in the message's error.
func TestACodeStandsOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("a@x")...)
		o.mail.become(fault(&holdfast.Failure{Outcome: holdfast.Permanent, Code: "554 5.7.1", Err: errors.New("554 5.7.1: DATA: no")}))
		stop := o.run(t)
		defer stop()
		o.sent(t, "ops", "n")
		time.Sleep(5 * time.Second)
		r := o.one(t, "n")
		if len(r.Targets) != 1 || r.Targets[0].Code != "554 5.7.1" || r.Targets[0].Text != "DATA: no" || strings.Count(r.LastError, "554") != 1 {
			t.Errorf("got %+v, %q", r.Targets, r.LastError)
		}
	})
}
