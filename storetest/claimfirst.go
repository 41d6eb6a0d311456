package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
)

func (k *kit) claimFirst(n int) []holdfast.Claim {
	k.t.Helper()
	list, err := k.ClaimFirst(k.ctx(), map[string]int{"a": n})
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

// firstAttempts claims messages that were never tried while many others are due again (WH-03).
func firstAttempts(k *kit) {
	const old = 30
	k.put(many(old, "old", holdfast.Message{})...)
	for _, c := range k.claim(old) {
		k.wins(c, failed(10*time.Second))
	}
	if got := idsOf(k.claimFirst(10)); len(got) > 0 {
		k.t.Errorf("claimed %v, want nothing", got)
	}
	is := func(got []holdfast.Claim, want ...holdfast.ID) []holdfast.Claim {
		k.t.Helper()
		if d := cmp.Diff(idsOf(got), append([]holdfast.ID{}, want...)); d != "" {
			k.t.Errorf("claims (-got +want):\n%s", d)
		}
		return got
	}
	k.put(holdfast.Message{ID: "known"}) // nothing else is due
	is(k.claimFirst(10), "known")
	k.pass(20 * time.Second)
	k.put(many(5, "new", holdfast.Message{})...)
	k.put(holdfast.Message{ID: "late", Delay: time.Minute}, holdfast.Message{ID: "brief", TTL: 2 * time.Second})
	tried := k.claim(10) // the store is within the backlog
	is(k.claimFirst(2), "new-0", "new-1")
	k.pass(5 * time.Second)
	got := is(k.claimFirst(10), "new-2", "new-3", "new-4")
	k.wins(got[0], failed(time.Second))
	k.wins(got[1], notStarted())
	k.pass(2 * time.Second)
	is(k.claimFirst(10), "new-3")
	k.put(holdfast.Message{ID: "newest"})
	is(k.claimFirst(10), "newest")
	rest := idsOf(k.claim(100))
	if len(tried)+len(rest) != old+1 || rest[len(rest)-1] != "new-2" {
		k.t.Errorf("the others are %v, want those that were tried", rest)
	}
	k.pass(time.Minute)
	is(k.claimFirst(10), "late")
	k.put(many(2, "last", holdfast.Message{})...)
	k.wins(tried[0], notStarted())
	back := is(k.claimFirst(1), "last-0")
	k.wins(back[0], notStarted())
	is(k.claimFirst(10), "last-0", "last-1")
	k.expire()
	if r := k.get("brief"); r.State != holdfast.Expired || r.Tries > 0 {
		k.t.Errorf("a message whose time is over: %+v", r)
	}
}
