package webhook_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// timetable is when WH-03 tries an event, since it came.
var timetable = []time.Duration{0, 25 * time.Second, 125 * time.Second, 525 * time.Second, 2125 * time.Second, 8525 * time.Second, 34125 * time.Second, 86125 * time.Second}

// rounded returns instants to the second.
func rounded(list []time.Duration) []time.Duration {
	all := make([]time.Duration, len(list))
	for i, at := range list {
		all[i] = at.Round(time.Second)
	}
	return all
}

// WH-03, WH-05: a subscriber that is away never stretches the schedule of an event: of a thousand events, each
// is tried to the second when its own schedule says, over restarts. A new one is tried at once.
func TestAThousandEventsKeepTheirSchedules(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "8,000 attempts in virtual time")
	const events, every = 1000, 7 * time.Second
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, func(string, time.Duration) conduct { return fails })
		w.subscribe("away", `{}`)
		for n := range events {
			time.Sleep(time.Until(w.began.Add(time.Duration(n+1) * every)))
			if n%250 == 249 { // nothing is under way
				w.close()
				w.open()
			}
			w.publish(n, "a")
		}
		for at := 3 * time.Hour; at < 24*time.Hour; at += 5 * time.Hour {
			time.Sleep(time.Until(w.began.Add(at + 500*time.Millisecond)))
			w.close()
			w.open()
			x := w.explain(events - 1)["away"].Delivery
			if x == nil || x.State != "pending" || !strings.HasPrefix(x.WaitsFor, fmt.Sprintf("retry %d of 7 in ", x.Attempts)) || x.Next == nil {
				t.Errorf("after %s it is explained as %+v", at, x)
			}
		}
		time.Sleep(25*time.Hour + events*every - time.Since(w.began))
		for n := range events {
			var want []time.Duration
			for _, after := range timetable {
				want = append(want, time.Duration(n+1)*every+after)
			}
			if d := cmp.Diff(rounded(w.hits["away"][n]), want); d != "" {
				t.Fatalf("attempts of event %d (-got +want):\n%s", n, d)
			}
			if x := w.explain(n)["away"].Delivery; n%100 == 0 && (x.State != "parked" || x.Attempts != 8) {
				t.Errorf("event %d is explained as %+v", n, x)
			}
		}
		w.close()
	})
}

// WH-03: where a subscriber hangs, an attempt is late by at most what its slots allow, the first attempt of an event
// goes at once while the retries of older ones hang, and explain says what a late one waits for.
func TestASubscriberThatHangsIsLateByItsSlots(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, func(_ string, since time.Duration) conduct {
			if since < time.Hour {
				return fails
			}
			return hangs
		})
		w.subscribe("hung", `{}`)
		time.Sleep(time.Until(w.began.Add(time.Hour - 20*time.Second)))
		const old, slots, timeout = 60, 6, 15 * time.Second // six of eight, the others are for first attempts
		for n := range old {
			w.publish(n, "a")
		}
		time.Sleep(27 * time.Second) // all 60 are due again, and six hang
		w.publish(old, "a")
		synctest.Wait()
		if got := w.hitsOf("hung", old); len(got) != 1 || got[0] != time.Since(w.began) {
			t.Errorf("a new event is tried after %s, published after %s", got, time.Since(w.began))
		}
		late := w.explain(old - 1)["hung"].Delivery
		if want := "due now; waits for a free slot of destination subscription:hung, which has 7 requests under way, the oldest for 2s"; late.WaitsFor != want || late.Attempts != 1 {
			t.Errorf("one that is late is explained as %+v", late)
		}
		time.Sleep(10 * time.Minute)
		due := time.Hour - 20*time.Second + timetable[1]
		for n := range old {
			got := w.hitsOf("hung", n)
			if len(got) < 2 || got[1] < due || got[1] > due+old/slots*timeout {
				t.Errorf("the retry of event %d came after %s, due after %s", n, got, due)
			}
		}
		w.close()
	})
}

// Issue 15: a subscriber that is down for 300 s at 25 events a second loses nothing, and nothing parks.
func TestASubscriberThatIsDownForFiveMinutesLosesNothing(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "30,000 attempts in virtual time")
	racetest.Bubble(t, func(t *testing.T) {
		const down, events = 300 * time.Second, 400 * 25
		w := newWorld(t, func(_ string, since time.Duration) conduct {
			if since < down {
				return refuses
			}
			return takes
		})
		w.subscribe("down", `{}`)
		for n := range events {
			w.publish(n, "a")
			time.Sleep(40 * time.Millisecond)
		}
		time.Sleep(timetable[4])
		for n := range events {
			if got := w.hits["down"][n]; len(got) != 1 {
				t.Fatalf("event %d came %d times", n, len(got))
			}
		}
		if c := w.db.Counts(); c.Parked > 0 || c.Pending > 0 {
			t.Errorf("%+v", c)
		}
		w.close()
	})
}
