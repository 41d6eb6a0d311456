package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast/activity"
	"github.com/holdfast-mq/holdfast/fanout"
)

// failingSubscriptions are kept with the first of their failures, until they work.
func failingSubscriptions(k *kit) {
	note := func(failed map[string]time.Duration, over ...fanout.Failing) {
		k.t.Helper()
		k.ok(k.Fanout.NoteFailing(k.ctx(), failed, over))
	}
	list := func(after string, limit int) []fanout.Failing {
		k.t.Helper()
		got, err := k.Fanout.Failing(k.ctx(), 5*time.Hour, after, limit)
		k.ok(err)
		return got
	}
	names := func(list []fanout.Failing) (long, all []string) {
		for _, f := range list {
			if all = append(all, f.Subscription); f.Long {
				long = append(long, f.Subscription)
			}
		}
		return long, all
	}
	note(map[string]time.Duration{"a": 2 * time.Hour, "b": time.Minute, "c": 0})
	first := list("", 10)
	k.pass(time.Hour)
	note(map[string]time.Duration{"a": 0, "b": 0}) // they are known: the first failure stays
	k.reopen()
	again := list("", 10)
	if d := cmp.Diff(again, first, cmpopts.EquateApproxTime(time.Second)); d != "" {
		k.t.Errorf("after an hour (-got +want):\n%s", d)
	}
	for range 3 {
		k.pass(50 * time.Minute)
	}
	long, all := names(list("", 10))
	if d := cmp.Diff([][]string{long, all}, [][]string{{"a"}, {"a", "b", "c"}}); d != "" {
		k.t.Errorf("later (-got +want):\n%s", d)
	}
	if _, behind := names(list("a", 1)); !cmp.Equal(behind, []string{"b"}) {
		k.t.Errorf("behind a: %v", behind)
	}
	other := again[1]
	other.Row++ // it was removed and added meanwhile
	note(nil, again[0], other)
	if _, left := names(list("", 10)); !cmp.Equal(left, []string{"b", "c"}) {
		k.t.Errorf("after a works: %v", left)
	}
}

// disabledAct is the act of a node that has disabled a subscription. What people do about one is in the audit log.
func disabledAct(k *kit) {
	stop := k.log(false)
	defer stop()
	h := k.hub()
	s := subscriptionTo("a", 0, "")
	for _, by := range []string{"anna", fanout.ByNode + "plant"} {
		for _, s.State = range []fanout.State{fanout.Active, fanout.Disabled} {
			s.Why, s.Actor = "each attempt has failed", by
			version, err := h.kept.PutSubscription(k.ctx(), s, by)
			if err != nil {
				k.t.Fatal(err)
			}
			s.Version = version
		}
	}
	k.logged()
	all := k.pages(activity.Query{Kind: activity.Disabled}, 3)
	if len(all) != 1 || all[0].Destination != fanout.Lane("a") || all[0].Actor != "node plant" || all[0].Error != "each attempt has failed" || all[0].Message != "" {
		k.t.Errorf("acts: %+v", all)
	}
}
