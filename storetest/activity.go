package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/activity"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/rows"
)

// activities tests that each act of a message stands in the log once (SF-27).
func activities(t *testing.T, m Maker) {
	t.Helper()
	m.meet(t, map[string]func(k *kit){
		"a subscription that a node disables":       disabledAct,
		"the six acts, and who did them":            sixActs,
		"each act once, whoever follows":            actsOnce,
		"a list narrows, and goes on":               actsListed,
		"who follows is told what was missed":       actsMissed,
		"what is off writes nothing and forgets":    actsOff,
		"a store that went back goes on from there": actsResumed,
	})
	m.run(t, map[string]func(k *kit){"the log is kept for its time": actsKept})
}

// log starts a log, and returns what stops it.
func (k *kit) log(off bool) (stop func()) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.ctx())
	ended := make(chan error, 1)
	l := &activity.Log{Journal: k, Store: k.Activity, Off: off, Keep: 30 * day, Every: time.Hour, Logger: slog.New(slog.DiscardHandler)}
	go func() { ended <- l.Run(ctx) }()
	waittest.Until(k.t, "the log follows, unless it is off", func() bool {
		list, err := k.Followers(k.ctx())
		return err == nil && slices.ContainsFunc(list, isActivity) != off
	})
	return func() {
		k.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			k.t.Error(err)
		}
	}
}

func isActivity(i holdfast.FollowerInfo) bool { return i.Name == activity.Follower }

// logged waits until the log has read everything.
func (k *kit) logged() {
	k.t.Helper()
	waittest.Until(k.t, "the log has read all", func() bool {
		list, err := k.Followers(k.ctx())
		i := slices.IndexFunc(list, isActivity)
		return err == nil && i >= 0 && list[i].Unread.IsZero()
	})
}

// acts are all acts that a query finds, oldest first, in words.
func (k *kit) acts(q activity.Query) (lines []string) {
	k.t.Helper()
	for _, a := range k.pages(q, 3) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", a.Message, a.Kind, a.Actor, a.Code)))
	}
	return lines
}

// pages follows the pages of a list, and returns its acts, oldest first.
func (k *kit) pages(q activity.Query, limit int) (list []activity.Act) {
	k.t.Helper()
	for next := int64(0); ; {
		p, err := activity.List(k.ctx(), k.Activity, q, next, limit)
		if err != nil {
			k.t.Fatal(err)
		}
		if len(p.Acts) > limit || p.Next < 0 || next > 0 && p.Next >= next {
			k.t.Fatalf("a page of %d acts, at most %d; next %d after %d", len(p.Acts), limit, p.Next, next)
		}
		list = append(list, p.Acts...)
		if next = p.Next; next == 0 {
			slices.Reverse(list)
			return list
		}
	}
}

func sixActs(k *kit) {
	stop := k.log(false)
	defer stop()
	began := k.now()
	k.put(holdfast.Message{ID: "1"})
	k.wins(k.one("1"), holdfast.Settlement{State: holdfast.Pending, RetryIn: 0, Outcome: holdfast.Transient, Charged: true, Code: "busy", Error: "not now"})
	k.wins(k.one("1"), holdfast.Settlement{State: holdfast.Parked, Reason: holdfast.ReasonPermanent, Outcome: holdfast.Permanent, Charged: true, Code: "refused", Error: "never"})
	_, err := k.Requeue(k.ctx(), "1", holdfast.Requeue{Actor: "ana"})
	k.ok(err)
	k.wins(k.one("1"), holdfast.Settlement{State: holdfast.Delivered})
	k.put(holdfast.Message{ID: "2"})
	_, err = k.Discard(k.ctx(), "2", "bert")
	k.ok(err)
	k.logged()
	want := []string{"1 queued", "1 retried  busy", "1 parked  refused", "1 retry ana", "1 delivered"}
	equal(k, "acts of 1", fmt.Sprint(k.acts(activity.Query{Message: "1"})), fmt.Sprint(want))
	equal(k, "acts of 2", fmt.Sprint(k.acts(activity.Query{Message: "2"})), fmt.Sprint([]string{"2 queued", "2 discard bert"}))
	for i, a := range k.pages(activity.Query{}, 100) {
		if a.Seq != int64(i)+1 || a.Destination != "a" || a.At.Sub(began).Abs() > time.Minute {
			k.t.Errorf("act %d is %+v; now is %v", i, a, k.now())
		}
		if a.Kind == activity.Parked && (a.Reason != holdfast.ReasonPermanent || a.Error != "never" || a.Attempt != 2 || a.Cycle != 1) {
			k.t.Errorf("it says %+v of a parked message", a)
		}
	}
}

// actsOnce: two logs run over one store, stop and begin again; each act stands once, numbered
// without a gap.
func actsOnce(k *kit) {
	first := k.log(false)
	second := k.log(false)
	for i := range 300 {
		k.put(holdfast.Message{ID: holdfast.ID(fmt.Sprintf("m%03d", i))})
		if i%100 == 99 {
			first()
			first = k.log(false)
		}
	}
	k.logged()
	first()
	second()
	seen := map[holdfast.ID]bool{}
	for i, a := range k.pages(activity.Query{}, 200) {
		if seen[a.Message] || a.Seq != int64(i)+1 {
			k.t.Fatalf("act %d is number %d, of %s", i, a.Seq, a.Message)
		}
		seen[a.Message] = true
	}
	if len(seen) != 300 {
		k.t.Errorf("%d acts, want 300", len(seen))
	}
}

// fillActs writes n acts, one an hour, until now. Each third is of the destination b and of cleo.
func (k *kit) fillActs(n int) {
	k.t.Helper()
	var list []rows.Row
	for i := range n {
		r := &rows.Activity{
			Seq: int64(i) + 1, At: k.now().Add(-time.Duration(n-i) * time.Hour).UnixMicro(), Noted: rows.Now, Kind: int64(activity.Delivered),
			Message: activity.Key(holdfast.ID(fmt.Sprintf("m%d", i/2))), Destination: "a",
		}
		if i%3 == 0 {
			r.Kind, r.Destination, r.Actor = int64(activity.Retry), "b", "cleo"
		}
		list = append(list, r)
	}
	for part := range slices.Chunk(list, 500) {
		k.project(part)
	}
}

// project writes rows as a follower's are written.
func (k *kit) project(list []rows.Row) {
	k.t.Helper()
	k.ok(k.Side().Change(k.ctx(), side.Cost{Rows: len(list)}, func(tx side.Tx) error { return tx.Put(list...) }))
}

func actsListed(k *kit) {
	if p, err := activity.List(k.ctx(), k.Activity, activity.Query{}, 0, 10); err != nil || len(p.Acts) != 0 || p.Next != 0 {
		k.t.Errorf("an empty log lists %+v, %v", p, err)
	}
	k.fillActs(60)
	now := k.now()
	for name, c := range map[string]struct {
		q    activity.Query
		want int
	}{
		"all":           {activity.Query{}, 60},
		"a destination": {activity.Query{Destination: "b"}, 20},
		"among":         {activity.Query{Among: []string{"b", "c"}}, 20},
		"among, of one": {activity.Query{Among: []string{"b"}, Message: "m0"}, 1},
		"none":          {activity.Query{Destination: "c"}, 0},
		"a kind":        {activity.Query{Kind: activity.Delivered}, 40},
		"an actor":      {activity.Query{Actor: "cleo"}, 20},
		"a message":     {activity.Query{Message: "m7"}, 2},
		"of all three":  {activity.Query{Message: "m0", Destination: "b", Kind: activity.Retry}, 1},
		"since":         {activity.Query{Since: now.Add(-10*time.Hour - time.Minute)}, 10},
		"until":         {activity.Query{Until: now.Add(-10*time.Hour - time.Minute)}, 50},
		"between":       {activity.Query{Since: now.Add(-20*time.Hour - time.Minute), Until: now.Add(-10*time.Hour - time.Minute), Destination: "b"}, 3},
		"later":         {activity.Query{Since: now.Add(time.Hour)}, 0},
		"earlier":       {activity.Query{Until: now.Add(-100 * time.Hour)}, 0},
	} {
		for _, limit := range []int{1, 7, 100} {
			got := k.pages(c.q, limit)
			if len(got) != c.want || !slices.IsSortedFunc(got, func(a, b activity.Act) int { return int(a.Seq - b.Seq) }) {
				k.t.Errorf("%s, by %d: %d acts, want %d, in order", name, limit, len(got), c.want)
			}
		}
	}
}

// actsMissed: who reads on gets each act once; who is far behind is told how many were left out.
func actsMissed(k *kit) {
	k.fillActs(1200)
	done := errors.New("done")
	read := func(after int64, q activity.Query) (list []activity.Act, missed int64) {
		k.t.Helper()
		reader := activity.Reader{Query: q, After: after}
		err := reader.Follow(k.ctx(), k.Activity, func(n activity.News) error {
			list, missed = append(list, n.Acts...), missed+n.Missed
			if len(n.Acts) > 500 {
				k.t.Errorf("%d acts at once", len(n.Acts))
			}
			if n.Last == 1200 || n.Last == 20_000 {
				return done
			}
			return nil
		})
		if !errors.Is(err, done) {
			k.t.Fatal(err)
		}
		return list, missed
	}
	if list, missed := read(0, activity.Query{}); len(list) != 1200 || missed != 0 || list[0].Seq != 1 || list[1199].Seq != 1200 {
		k.t.Errorf("%d acts, %d missed", len(list), missed)
	}
	if list, _ := read(1190, activity.Query{Destination: "b"}); len(list) != 3 {
		k.t.Errorf("%d acts of b, want 3", len(list))
	}
	if list, _ := read(-1, activity.Query{}); len(list) != 0 {
		k.t.Errorf("%d acts from now on", len(list))
	}
	if list, _ := read(5000, activity.Query{}); len(list) != 0 {
		k.t.Errorf("%d acts after one that is not there any more", len(list))
	}
	var far []rows.Row
	for seq := int64(19_001); seq <= 20_000; seq++ {
		far = append(far, &rows.Activity{Seq: seq, At: 1, Noted: rows.Now, Kind: 1, Message: activity.Key("x"), Destination: "a"})
	}
	k.project(far)
	if list, missed := read(1200, activity.Query{}); len(list) != 1000 || missed != 17_800 {
		k.t.Errorf("%d acts, %d missed; want the last 1000, and to be told of 17800", len(list), missed)
	}
}

func actsOff(k *kit) {
	k.log(false)()
	k.put(holdfast.Message{ID: "1"})
	k.log(true)()
	k.put(holdfast.Message{ID: "2"})
	if list := k.acts(activity.Query{}); len(list) > 0 {
		k.t.Errorf("it has written %v", list)
	}
	if list, err := k.Followers(k.ctx()); err != nil || len(list) > 0 {
		k.t.Errorf("followers %v, %v: the journal would be kept for nobody", list, err)
	}
}

// actsResumed: the numbers go on after a new start.
func actsResumed(k *kit) {
	stop := k.log(false)
	k.put(holdfast.Message{ID: "1"})
	k.logged()
	stop()
	k.put(holdfast.Message{ID: "2"})
	k.reopen()
	stop = k.log(false)
	defer stop()
	k.put(holdfast.Message{ID: "3"})
	k.logged()
	list := k.pages(activity.Query{}, 100)
	if len(list) != 3 || list[0].Message != "1" || list[2].Seq != 3 || list[2].Message != "3" {
		k.t.Errorf("the log is %+v", list)
	}
}

// actsKept: an act is deleted when its time is over. The newest stays, so that no number is used
// twice.
func actsKept(k *kit) {
	k.fillActs(2500)
	purge := func() (n int) {
		k.t.Helper()
		for more := true; more; n++ {
			var err error
			if more, err = k.Activity.Purge(k.ctx(), 30*day); err != nil {
				k.t.Fatal(err)
			}
		}
		return n
	}
	k.pass(29 * day)
	purge()
	if oldest, newest, err := k.Activity.Ends(k.ctx()); oldest != 1 || newest != 2500 || err != nil {
		k.t.Errorf("after 29 days it has %d to %d, %v", oldest, newest, err)
	}
	k.pass(2 * day)
	if n := purge(); n < 3 {
		k.t.Errorf("%d purges of at most 1000 acts each", n)
	}
	if oldest, newest, err := k.Activity.Ends(k.ctx()); oldest != 2500 || newest != 2500 || err != nil {
		k.t.Errorf("after 31 days it has %d to %d, %v", oldest, newest, err)
	}
}
