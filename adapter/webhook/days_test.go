package webhook_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// In scripts/long: 30. Each has 1,440 events and 14,400 deliveries.
var days = flag.Int("webhookdays", 1, "for how many virtual days TestDaysOfSubscribers publishes an event a minute")

const (
	daySubscribers = 200
	dayKinds       = 20 // of events: each is for ten subscribers, one of which is bad at times
	day            = 24 * time.Hour
)

// bad is what a bad subscriber does from one time of the day to another.
type bad struct {
	does     conduct
	from, to time.Duration
}

// badOnes are the kinds of bad subscribers. Subscriber n is of kind n; those from 20 on are good.
var badOnes = []bad{
	{refuses, 0, day},
	{refuses, 2 * time.Hour, 9 * time.Hour},
	{gone, goneFrom, goneTo},
	{busy, time.Hour, 2 * time.Hour},
	{moved, 0, day},
	{hangs, 2 * time.Hour, 6 * time.Hour},
	{drips, 0, day},
	{lies, 0, day},
	{slow, time.Hour, 4 * time.Hour},
	{tears, time.Hour, 3 * time.Hour},
}

const (
	goneFrom = 3 * time.Hour
	goneTo   = 5 * time.Hour // then somebody resumes it
)

func dayHost(n int) string { return fmt.Sprintf("s%03d", n) }

// doesAt is what subscriber n does at a time since the beginning.
func doesAt(n int, since time.Duration) conduct {
	if n < dayKinds {
		if b := badOnes[n%len(badOnes)]; since%day >= b.from && since%day < b.to {
			return b.does
		}
	}
	return takes
}

// course is what should become of one delivery.
type course struct {
	tries     []time.Duration // of attempts, since the beginning
	ends      []time.Duration
	delivered bool
}

// expected returns the course of an event that subscriber n got at a time.
func expected(n int, came time.Duration) (c course) {
	wait := fanout.DefaultSchedule().Policy()
	at := came
	for try := range 8 {
		does := doesAt(n, at)
		if does == gone && at%day-goneFrom >= dayKinds*time.Minute { // it is paused by now
			at = at - at%day + goneTo
			does = takes
		}
		c.tries = append(c.tries, at)
		least := time.Duration(0)
		switch does {
		case takes, lies:
			c.delivered = true
		case drips:
			c.delivered = true
			at += webhook.DefaultTimeout
		case hangs, slow:
			at += webhook.DefaultTimeout
		case busy:
			least = 90 * time.Second
		case refuses, moved, tears, fails, gone:
		}
		c.ends = append(c.ends, at)
		if c.delivered || does == gone {
			break
		}
		at += wait.Next(try, least)
	}
	return c
}

// state is how the course stands at a time; some: it is known, since no attempt is under way.
func (c *course) state(at time.Duration) (state string, attempts int, next time.Duration, some bool) {
	for i := range c.tries {
		if c.tries[i] > at-time.Second {
			return "pending", attempts, c.tries[i], c.tries[i] > at+time.Second
		}
		if c.ends[i] > at-time.Second {
			return "", 0, 0, false
		}
		attempts++
	}
	if c.delivered {
		return "delivered", attempts, 0, true
	}
	return "parked", attempts, 0, true
}

// Issue 15: an event a minute for 200 subscribers of which 20 die, come back, answer 410, 429, redirect, hang, drip, lie
// about length or cut the connection. Each gets each of its events, and no other, with one webhook-id, in exactly the attempts that its conduct and the
// schedule make, and explain says so.
func TestDaysOfSubscribers(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "days of attempts in virtual time")
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, func(host string, since time.Duration) conduct {
			var n int
			_, _ = fmt.Sscanf(host, "s%d", &n)
			return doesAt(n, since)
		})
		for n := range daySubscribers {
			w.subscribe(dayHost(n), fmt.Sprintf(`{"types":["kind-%d"]}`, n%dayKinds))
		}
		events := *days * 24 * 60
		for i := range events {
			at := time.Duration(i+1) * time.Minute
			time.Sleep(time.Until(w.began.Add(at)))
			if at%day == goneTo {
				w.resumeGone()
			}
			w.publish(i, kindOf(i))
			if at%day == 4*time.Hour+30*time.Minute {
				time.Sleep(20 * time.Second)
				for j := max(0, i-23*60); j <= i; j += 7 {
					w.explained(j)
				}
			}
		}
		time.Sleep(day + 10*time.Minute)
		for i := range events {
			for n := i % dayKinds; n < daySubscribers; n += dayKinds {
				want := expected(n, time.Duration(i+1)*time.Minute)
				if got := w.hits[dayHost(n)][i]; !near(got, want.seen(n)) {
					t.Errorf("event %d came to %s after %s, want %s", i, dayHost(n), got, want.seen(n))
				}
			}
			if i%(13**days) == 0 {
				w.explained(i)
			}
		}
		for n := range daySubscribers {
			for i := range w.hits[dayHost(n)] {
				if i >= 0 && i%dayKinds != n%dayKinds {
					t.Errorf("%s got event %d, which is not for it", dayHost(n), i)
				}
			}
		}
		w.close()
	})
}

func kindOf(event int) string { return fmt.Sprint("kind-", event%dayKinds) }

// seen returns the attempts of which subscriber n knows the event: not those that it refused.
func (c *course) seen(n int) (list []time.Duration) {
	for _, at := range c.tries {
		if doesAt(n, at) != refuses {
			list = append(list, at)
		}
	}
	return list
}

func near(got, want []time.Duration) bool {
	return slices.EqualFunc(got, want, func(a, b time.Duration) bool { return (a - b).Abs() < time.Second })
}

// explained compares what explain says of event i with what it should.
func (w *world) explained(i int) {
	w.t.Helper()
	now := time.Since(w.began)
	all := w.explain(i)
	for n := range daySubscribers {
		x, is := all[dayHost(n)], n%dayKinds == i%dayKinds
		if x.Matched != is || is != (x.Delivery != nil) || is == (x.Why != "") {
			w.t.Errorf("event %d and %s are explained as %+v", i, dayHost(n), x)
		}
		if !is || x.Delivery == nil {
			continue
		}
		want := expected(n, time.Duration(i+1)*time.Minute)
		state, attempts, next, some := want.state(now)
		if !some {
			continue
		}
		got := api.EventDelivery{State: x.Delivery.State, Attempts: x.Delivery.Attempts}
		if d := cmp.Diff(got, api.EventDelivery{State: state, Attempts: attempts}); d != "" || (x.Delivery.WaitsFor == "") != (state == "delivered") {
			w.t.Errorf("after %s, event %d to %s is explained as %+v, want %s after %d attempts", now, i, dayHost(n), x.Delivery, state, attempts)
		}
		if paused := next%day == goneTo && attempts == 0; state == "pending" && !paused && w.began.Add(next).Sub(*x.Delivery.Next).Abs() > time.Second {
			w.t.Errorf("event %d to %s is tried next at %s, want %s", i, dayHost(n), x.Delivery.Next, w.began.Add(next))
		}
	}
}

// resumeGone resumes what answered 410.
func (w *world) resumeGone() {
	w.t.Helper()
	for n := range dayKinds {
		if badOnes[n%len(badOnes)].does != gone {
			continue
		}
		s, _, err := w.hub.Book.Subscription(w.t.Context(), dayHost(n))
		if err != nil || s.State != fanout.Paused || s.Actor != fanout.Subscriber {
			w.t.Errorf("%s is %s, by %q, %v", s.ID, s.State, s.Actor, err)
			continue
		}
		s.State, s.Actor, s.Why = fanout.Active, "anna", ""
		if _, err := w.hub.Book.Store().PutSubscription(w.t.Context(), s, "anna"); err != nil {
			w.t.Error(err)
		}
	}
}
