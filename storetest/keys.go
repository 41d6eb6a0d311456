package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

func keyed(id holdfast.ID) holdfast.Message { return holdfast.Message{ID: id, OrderingKey: "key"} }

func keyedAll(ids ...holdfast.ID) []holdfast.Message {
	ms := make([]holdfast.Message, len(ids))
	for i, id := range ids {
		ms[i] = keyed(id)
	}
	return ms
}

func (k *kit) strict(on bool) {
	k.t.Helper()
	if err := k.ConfigureLane(k.ctx(), "a", holdfast.LaneSettings{Strict: on}); err != nil {
		k.t.Fatal(err)
	}
}

// next claims the only message that the key releases, and fails unless it has this id.
func (k *kit) next(id holdfast.ID) holdfast.Claim {
	k.t.Helper()
	got := k.claim(10)
	if len(got) != 1 || got[0].Message.ID != id {
		k.t.Fatalf("claimed %v, want only %s", idsOf(got), id)
	}
	return got[0]
}

// keys tests the order of messages that share an ordering key.
func keys(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		// Outbox case 22.
		"one of a key is in flight, in order, over retries": func(k *kit) {
			k.put(keyedAll("1", "2", "3")...)
			k.put(holdfast.Message{ID: "free"})
			c := k.claim(10)
			equal(k, "claims", idsOf(c), []holdfast.ID{"1", "free"})
			k.wins(c[0], failed(time.Minute))
			k.nothing()
			k.reopen()
			k.claim(1) // "free" again
			k.nothing()
			k.pass(time.Minute + time.Millisecond)
			k.wins(k.next("1"), delivered())
			k.wins(k.next("2"), notStarted())
			k.wins(k.next("2"), delivered())
			k.put(keyed("4"))
			k.wins(k.next("3"), delivered())
			k.wins(k.next("4"), delivered())
			k.put(keyed("5"))
			k.next("5")
		},
		"keys and lanes do not wait for each other": func(k *kit) {
			for i := range 5 {
				key := fmt.Sprint("key", i)
				k.put(holdfast.Message{OrderingKey: key}, holdfast.Message{OrderingKey: key})
			}
			k.put(holdfast.Message{OrderingKey: "key0", Destination: "b"})
			if n := len(k.claim(20)); n != 5 {
				k.t.Errorf("%d claims of five keys, want 5", n)
			}
			if n := len(k.claimOf("b", 20)); n != 1 {
				k.t.Errorf("%d claims of the other lane, want 1", n)
			}
		},
		"a parked message lets the others go": func(k *kit) {
			k.put(keyedAll("1", "2")...)
			k.wins(k.next("1"), parked())
			k.wins(k.next("2"), delivered())
			k.put(keyed("3"))
			k.next("3")
		},
		"a requeued message waits for the one in flight": func(k *kit) {
			k.put(keyedAll("1", "2", "3")...)
			k.wins(k.next("1"), parked())
			c := k.next("2")
			k.requeue("1")
			k.nothing()
			k.wins(c, failed(0)) // it waits too, and came later
			k.next("1")
			k.reopen()
			k.wins(k.next("1"), delivered())
			k.wins(k.next("2"), delivered())
			k.next("3")
		},
		"requeued in any order, delivered in the order of acceptance": requeuedInAnyOrder,
		"a requeued message goes before a later one that waits for its retry": func(k *kit) {
			k.put(keyedAll("1", "2")...)
			k.wins(k.next("1"), parked())
			k.wins(k.next("2"), failed(time.Hour))
			k.requeue("1")
			k.wins(k.next("1"), delivered())
			k.nothing() // the second still has its wait
			k.pass(time.Hour + time.Second)
			k.next("2")
		},
		"what is rescheduled keeps its place in its key": func(k *kit) {
			k.put(keyedAll("1", "2", "3")...)
			k.reschedule("2", 2*time.Hour)
			k.reschedule("1", time.Hour)
			k.nothing()
			k.pass(time.Hour + time.Second)
			k.wins(k.next("1"), delivered())
			k.nothing()
			k.reschedule("3", 0) // it goes on waiting for its key
			k.nothing()
			k.reschedule("2", 0)
			k.wins(k.next("2"), delivered())
			k.next("3")
		},
		"what is discarded lets the next of its key go": func(k *kit) {
			k.put(keyedAll("1", "2", "3", "4")...)
			c := k.next("1")
			k.discard("2")
			k.discard("1")
			k.nothing()
			k.wins(c, failed(time.Hour))
			k.is("1", holdfast.Discarded)
			k.discard("3") // the head, not claimed
			k.wins(k.next("4"), delivered())
		},
		"strict: a parked message stops its key": func(k *kit) {
			k.strict(true)
			k.put(keyedAll("1", "2", "3")...)
			k.wins(k.next("1"), parked())
			k.nothing()
			k.put(keyed("4"))
			k.put(holdfast.Message{ID: "other", OrderingKey: "another"})
			k.wins(k.next("other"), delivered())
			k.reopen()
			k.nothing()
			k.requeue("1")
			k.wins(k.next("1"), delivered())
			k.wins(k.next("2"), parked())
			k.nothing()
			k.discard("2")
			k.wins(k.next("3"), delivered())
			k.next("4")
		},
		"strict: two parked messages": func(k *kit) {
			k.put(keyedAll("1", "2", "3")...)
			k.wins(k.next("1"), parked())
			k.wins(k.next("2"), parked())
			c := k.next("3")
			k.strict(true)
			k.put(keyed("4"))
			k.wins(c, delivered())
			k.nothing()
			k.requeue("2") // behind the first
			k.nothing()
			k.discard("1")
			k.wins(k.next("2"), delivered())
			k.next("4")
		},
		"strict: an expired parked message frees its key": func(k *kit) {
			k.strict(true)
			first := keyed("1")
			first.TTL = time.Minute
			k.put(first, keyed("2"))
			k.wins(k.next("1"), parked())
			k.pass(2 * time.Minute)
			k.expire()
			k.next("2")
		},
		"strict: a purged parked message frees its key": func(k *kit) {
			k.strict(true)
			k.put(keyedAll("1", "2", "3")...)
			k.wins(k.next("1"), parked())
			k.pass(2 * time.Hour)
			if n := k.purge(holdfast.Retention{Parked: time.Hour}); n != 1 {
				k.t.Fatalf("%d messages purged, want 1", n)
			}
			k.next("2")
		},
		"no longer strict: what was stopped goes on": func(k *kit) {
			k.strict(true)
			const keys = 210 // more than one transaction frees
			var ms []holdfast.Message
			for i := range keys {
				key := fmt.Sprint("key", i)
				ms = append(ms, holdfast.Message{OrderingKey: key}, holdfast.Message{OrderingKey: key})
			}
			k.put(ms...)
			k.winAll(k.claim(2*keys), parked())
			k.nothing()
			k.reopen()
			k.nothing()
			k.strict(false)
			if n := len(k.claim(2 * keys)); n != keys {
				k.t.Errorf("%d messages go on, want %d", n, keys)
			}
			k.strict(false)
			k.nothing()
		},
		"the head expires": func(k *kit) {
			first := keyed("1")
			first.TTL = time.Minute
			k.put(first, keyed("2"))
			k.pass(2 * time.Minute)
			k.expire()
			k.wins(k.next("2"), delivered())
			k.is("1", holdfast.Expired)
			k.requeue("1")
			k.next("1")
		},
		"a blocked message expires": func(k *kit) {
			second := keyed("2")
			second.TTL = time.Minute
			k.put(keyed("1"), second, keyed("3"))
			c := k.next("1")
			k.pass(2 * time.Minute)
			k.nothing()
			k.expire()
			k.is("2", holdfast.Expired)
			k.nothing()
			k.wins(c, failed(time.Hour))
			k.nothing() // the first still waits for its retry
			k.pass(2 * time.Hour)
			k.wins(k.next("1"), delivered())
			k.next("3")
		},
		"a blocked message keeps its delay": func(k *kit) {
			second := keyed("2")
			second.Delay = time.Hour
			k.put(keyed("1"), second)
			k.wins(k.next("1"), delivered())
			k.nothing()
			k.pass(30 * time.Minute)
			k.nothing()
			k.put(keyed("3"))
			k.nothing() // the delayed one is the head
			k.reopen()
			k.pass(31 * time.Minute)
			k.wins(k.next("2"), delivered())
			k.next("3")
		},
		"a retry that waits for the end of its TTL stays the head": func(k *kit) {
			first := keyed("1")
			first.TTL = time.Minute
			second := keyed("2")
			second.TTL = 30 * time.Second
			k.put(first, second, keyed("3"))
			k.wins(k.next("1"), failed(time.Hour))
			k.pass(40 * time.Second)
			k.expire() // the second
			k.nothing()
			k.pass(30 * time.Second)
			k.expire()
			k.next("3")
		},
		"many of one key": func(k *kit) {
			want := k.put(many(60, "m", holdfast.Message{OrderingKey: "key"})...)
			var got []holdfast.ID
			for range want {
				c := k.claim(5)
				got = append(got, idsOf(c)...)
				k.wins(c[0], delivered())
			}
			equal(k, "order", got, want)
		},
	})
}

// F1-31: whichever is requeued first, and whatever came in the meantime.
func requeuedInAnyOrder(k *kit) {
	steps := []holdfast.ID{"created", "paid", "shipped", "closed"}
	k.put(keyedAll(steps...)...)
	for _, id := range steps {
		k.wins(k.next(id), parked())
	}
	k.put(keyed("thanked"))
	for _, id := range slices.Backward(steps) {
		k.requeue(id)
	}
	var got []holdfast.ID
	for range len(steps) + 1 {
		c := k.claim(10)
		got = append(got, idsOf(c)...)
		k.winAll(c, delivered())
	}
	equal(k, "order", got, append(steps, "thanked"))
}
