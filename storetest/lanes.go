package storetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
)

// lanes tests what a store keeps about a destination.
func lanes(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"faults are kept until they are cleared": func(k *kit) {
			faults := func(want ...holdfast.LaneFaultInfo) {
				k.t.Helper()
				got, err := k.LaneFaults(k.ctx())
				if err != nil {
					k.t.Fatal(err)
				}
				slices.SortFunc(got, func(a, b holdfast.LaneFaultInfo) int { return strings.Compare(a.Destination, b.Destination) })
				for _, f := range got {
					if ago := k.now().Sub(f.Since); ago < -time.Second || ago > time.Minute {
						k.t.Errorf("fault of %s since %s ago", f.Destination, ago)
					}
				}
				equal(k, "faults", got, want, cmpopts.IgnoreFields(holdfast.LaneFaultInfo{}, "Since"), cmpopts.EquateEmpty())
			}
			set := func(lane, problem string) {
				k.t.Helper()
				if err := k.SetLaneFault(k.ctx(), lane, problem); err != nil {
					k.t.Fatal(err)
				}
			}
			faults()
			set("a", "")
			faults()
			set("b", "refused")
			set("a", "no such host")
			set("a", "certificate")
			faults(holdfast.LaneFaultInfo{Destination: "a", Problem: "certificate"}, holdfast.LaneFaultInfo{Destination: "b", Problem: "refused"})
			k.put(holdfast.Message{ID: "m"}) // a fault alone holds nothing
			k.wins(k.one("m"), delivered())
			k.reopen()
			faults(holdfast.LaneFaultInfo{Destination: "a", Problem: "certificate"}, holdfast.LaneFaultInfo{Destination: "b", Problem: "refused"})
			set("a", "")
			faults(holdfast.LaneFaultInfo{Destination: "b", Problem: "refused"})
		},
		"decisions are kept": func(k *kit) { // F1-80
			decisions := func(want ...holdfast.LaneDecision) {
				k.t.Helper()
				got, err := k.LaneDecisions(k.ctx())
				if err != nil {
					k.t.Fatal(err)
				}
				slices.SortFunc(got, func(a, b holdfast.LaneDecision) int { return strings.Compare(a.Destination, b.Destination) })
				for _, d := range got {
					if ago := k.now().Sub(d.At); ago < -time.Second || ago > time.Minute {
						k.t.Errorf("decision about %s was %s ago", d.Destination, ago)
					}
				}
				equal(k, "decisions", got, want, cmpopts.IgnoreFields(holdfast.LaneDecision{}, "At", "Version"), cmpopts.EquateEmpty())
			}
			do := func(f func(ctx context.Context, destination, actor string) error, lane, actor string) {
				k.t.Helper()
				if err := f(k.ctx(), lane, actor); err != nil {
					k.t.Fatal(err)
				}
			}
			decisions()
			do(k.PauseLane, "a", "anna")
			do(k.PauseLane, "a", "bert") // it was paused already
			do(k.ResumeLane, "b", "bert")
			want := []holdfast.LaneDecision{{Destination: "a", Paused: true, Actor: "anna"}, {Destination: "b", Actor: "bert"}}
			decisions(want...)
			k.put(holdfast.Message{ID: "m"}) // a pause is the dispatcher's task: the store gives what is claimed
			k.wins(k.one("m"), delivered())
			k.reopen()
			decisions(want...)
			if err := k.SetLaneFault(k.ctx(), "a", "refused"); err != nil {
				k.t.Fatal(err)
			}
			do(k.ResumeLane, "a", "cleo")
			decisions(holdfast.LaneDecision{Destination: "a", Actor: "cleo"}, holdfast.LaneDecision{Destination: "b", Actor: "bert"})
			if f, err := k.LaneFaults(k.ctx()); err != nil || len(f) != 0 {
				k.t.Errorf("after it was resumed there are faults %+v, %v", f, err)
			}
		},
		"how long the oldest message is due": func(k *kit) { // F1-33
			overdue := func(least, most time.Duration) {
				k.t.Helper()
				got, err := k.Overdue(k.ctx())
				if err != nil {
					k.t.Fatal(err)
				}
				age, due := got["a"]
				if due != (most > 0) || age < least || age > most {
					k.t.Errorf("overdue are %v, want %s to %s", got, least, most)
				}
			}
			overdue(0, 0)
			k.put(holdfast.Message{ID: "later", Delay: time.Hour})
			overdue(0, 0)
			k.put(holdfast.Message{ID: "now"})
			k.pass(time.Second)
			overdue(900*time.Millisecond, 6*time.Second)
			k.wins(k.one("now"), delivered())
			overdue(0, 0)
		},
		"settings are kept": func(k *kit) {
			k.strict(true)
			k.reopen()
			k.put(keyedAll("1", "2")...)
			k.wins(k.next("1"), parked())
			k.nothing()
		},
	})
}
