package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/minutes"
	"github.com/holdfast-mq/holdfast/rows"
)

// minutesKept tests that what a node counted in a minute is kept for its time, and that a clock that was wrong
// neither doubles a minute nor shows one that has not come.
func minutesKept(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"each minute of each node once": func(k *kit) {
			at := k.minute(-3)
			first := minutes.Minute{At: at, Node: "a", Took: 42 * time.Second, Numbers: minutes.Numbers{Delivered: 7, Waiting: 3, Oldest: time.Second}}
			again, other, later := first, first, first
			again.Delivered, again.Took, other.Node, later.At = 9, time.Minute, "b", at.Add(time.Minute)
			for _, one := range []minutes.Minute{later, other, first, again} {
				k.ok(k.Minutes.KeepMinute(k.ctx(), &one))
			}
			k.reopen()
			k.haveMinutes(at, again, other, later)
			k.haveMinutes(at.Add(time.Nanosecond), later)
		},
		"a minute that has not come is not shown": func(k *kit) {
			wrong := minutes.Minute{At: k.minute(60), Node: "a", Took: time.Minute}
			k.ok(k.Minutes.KeepMinute(k.ctx(), &wrong))
			k.haveMinutes(k.minute(-3))
		},
		"minutes are kept for their time, whatever the clock showed": func(k *kit) {
			for i := range 250 {
				at := k.minute(-1 - i)
				if i >= 240 {
					at = k.minute(1 << 22) // years ahead
					at = at.Add(time.Duration(i) * time.Minute)
				}
				k.ok(k.Minutes.KeepMinute(k.ctx(), &minutes.Minute{At: at, Node: "a", Took: time.Minute}))
			}
			since := k.minute(-300)
			k.pass(minutes.Keep - time.Minute)
			k.ok(k.Minutes.PurgeMinutes(k.ctx(), minutes.Keep))
			if list, err := k.Minutes.Minutes(k.ctx(), since); err != nil || len(list) != 240 {
				k.t.Errorf("before its time: %d minutes, %v", len(list), err)
			}
			k.pass(time.Hour)
			for range 3 {
				k.ok(k.Minutes.PurgeMinutes(k.ctx(), minutes.Keep))
			}
			k.ok(k.Side().EachRow(k.ctx(), rows.Range{Table: rows.Of((*rows.Minute)(nil))}, func(r rows.Row) error {
				return fmt.Errorf("%+v is still there", r)
			}))
		},
	})
}

// minute returns the beginning of a minute so many minutes from now.
func (k *kit) minute(from int) time.Time {
	return time.Now().UTC().Truncate(time.Minute).Add(time.Duration(from) * time.Minute)
}

func (k *kit) haveMinutes(since time.Time, want ...minutes.Minute) {
	k.t.Helper()
	list, err := k.Minutes.Minutes(k.ctx(), since)
	k.ok(err)
	if d := cmp.Diff(list, want); d != "" {
		k.t.Errorf("minutes since %s (-got +want):\n%s", since, d)
	}
}
