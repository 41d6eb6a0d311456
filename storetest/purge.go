package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// purging tests that final messages are kept for their retention, and that no others are purged.
func purging(t *testing.T, m Maker) {
	t.Helper()
	gone := func(k *kit, id holdfast.ID) bool {
		k.t.Helper()
		_, err := k.Get(k.ctx(), id)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			k.t.Fatal(err)
		}
		return err != nil
	}
	m.run(t, map[string]func(k *kit){
		// Outbox case 36.
		"each state has its retention": func(k *kit) {
			made := k.standing("a")
			k.put(holdfast.Message{ID: "newest", Destination: "c"})
			hours := map[holdfast.State]int{holdfast.Delivered: 1, holdfast.Expired: 3, holdfast.Discarded: 5, holdfast.Parked: 7}
			r := holdfast.Retention{Delivered: time.Hour, Expired: 3 * time.Hour, Discarded: 5 * time.Hour, Parked: 7 * time.Hour}
			for hour := range 9 {
				k.purge(r)
				for s, id := range made {
					keep, ends := hours[s]
					if want := ends && hour > keep; gone(k, id) != want && hour != keep {
						k.t.Errorf("after %d h the message that was %s is gone: %t", hour, s, !want)
					}
				}
				k.pass(time.Hour)
			}
			k.is(made[holdfast.Pending], holdfast.Pending)
			k.is(made[holdfast.Claimed], holdfast.Claimed)
		},
		// SF-12: messages that may have to be sent again.
		"what is held is kept for longer, and nothing else": func(k *kit) {
			k.put(holdfast.Message{ID: "held", Destination: "a"}, holdfast.Message{ID: "not", Destination: "b"}, holdfast.Message{ID: "newest", Destination: "c"})
			k.wins(k.one("held"), delivered())
			k.wins(k.claimOf("b", 1)[0], delivered())
			k.park(holdfast.Message{ID: "parked", Destination: "a"})
			r := holdfast.Retention{Delivered: time.Hour, Parked: time.Hour, Held: map[string]time.Duration{"a": 5 * time.Hour, "c": time.Minute, "never met": time.Hour}}
			k.put(holdfast.Message{ID: "last", Destination: "c"})
			k.pass(2 * time.Hour)
			if n := k.purge(r); n != 2 || gone(k, "held") || !gone(k, "not") || !gone(k, "parked") {
				k.t.Errorf("%d purged, want all but what is held", n)
			}
			r.Held["a"] = time.Minute // not less than the retention
			r.Delivered = 3 * time.Hour
			if n := k.purge(r); n != 0 {
				k.t.Errorf("%d purged before their retention", n)
			}
			k.pass(2 * time.Hour)
			if n := k.purge(r); n != 1 || !gone(k, "held") {
				k.t.Errorf("%d purged, want what was held", n)
			}
		},
		"zero keeps for ever": func(k *kit) {
			made := k.standing("a")
			k.put(holdfast.Message{ID: "newest"})
			k.pass(2 * 365 * 24 * time.Hour)
			if n := k.purge(holdfast.Retention{}); n != 0 {
				k.t.Errorf("%d purged without a retention", n)
			}
			if n := k.purge(holdfast.Retention{Delivered: 7 * 24 * time.Hour}); n != 1 {
				k.t.Errorf("%d purged, want the delivered one", n)
			}
			k.is(made[holdfast.Parked], holdfast.Parked) // a person has not decided
		},
		"retention counts from the end, not from the start": func(k *kit) {
			k.put(holdfast.Message{ID: "m"}, holdfast.Message{ID: "n"}, holdfast.Message{ID: "newest"})
			c := k.claim(2)
			k.wins(c[0], delivered())
			k.pass(10 * time.Hour)
			k.wins(c[1], delivered())
			if n := k.purge(holdfast.Retention{Delivered: time.Hour}); n != 1 || !gone(k, "m") || gone(k, "n") {
				k.t.Errorf("%d purged", n)
			}
		},
		// Outbox cases 36, 50.
		"a purge of many rows is made in pages": func(k *kit) {
			const n = 700
			k.put(many(n, "m", holdfast.Message{})...)
			k.winAll(k.claim(n), delivered())
			k.put(holdfast.Message{ID: "newest"})
			k.pass(2 * time.Hour)
			k.put(holdfast.Message{ID: "between"})
			if got := k.purge(holdfast.Retention{Delivered: time.Hour}); got != n {
				k.t.Errorf("%d purged, want %d", got, n)
			}
			if got := len(k.all(holdfast.Query{})); got != 2 {
				k.t.Errorf("%d messages left, want 2", got)
			}
		},
		"the id of a purged message is free": func(k *kit) {
			id := k.put(holdfast.Message{ID: "m"})[0]
			k.wins(k.one(id), delivered())
			k.put(holdfast.Message{ID: "newest"})
			k.pass(2 * time.Hour)
			k.purge(holdfast.Retention{Delivered: time.Hour})
			if r, err := k.Enqueue(k.ctx(), fill([]holdfast.Message{{ID: "m", Payload: []byte(`2`)}})...); err != nil || r[0].Duplicate {
				k.t.Errorf("got %v, %v", r, err)
			}
			r := k.is("m", holdfast.Pending)
			if len(r.History) != 1 {
				k.t.Errorf("the history of its forerunner is left: %v", r.History)
			}
		},
		"a requeued message is not purged": func(k *kit) {
			id := k.park(holdfast.Message{ID: "m"})
			k.put(holdfast.Message{ID: "newest", Destination: "b"})
			k.pass(2 * time.Hour)
			k.requeue(id)
			if n := k.purge(holdfast.Retention{Delivered: time.Hour, Parked: time.Hour}); n != 0 {
				k.t.Errorf("%d purged", n)
			}
			k.one(id)
		},
	})
}
