package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
)

// enqueuer tests what an outbox promises to those who enqueue.
func enqueuer(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"what was accepted is claimed as it was, from memory and from disk": acceptedAsItWas,
		"an id that is known is the same message":                           duplicates,
		// Outbox case 49; SF-14.
		"an id with other content is a conflict": conflicts,
		// Outbox case 45.
		"two messages of one id in one call": func(k *kit) {
			m := fill([]holdfast.Message{{ID: "twice"}})[0]
			receipts, err := k.Enqueue(k.ctx(), m, m)
			if err != nil {
				k.t.Fatal(err)
			}
			equal(k, "receipts", receipts, []holdfast.Receipt{{ID: "twice"}, {ID: "twice", Duplicate: true}})
			other := m
			other.Payload = []byte(`other`)
			m.ID, other.ID = "fresh", "fresh"
			if _, err := k.Enqueue(k.ctx(), m, other); !errors.Is(err, holdfast.ErrConflict) {
				k.t.Errorf("got %v, want a conflict", err)
			}
			if _, err := k.Get(k.ctx(), "fresh"); !errors.Is(err, holdfast.ErrNotFound) {
				k.t.Errorf("got %v, want that neither was stored", err)
			}
		},
		// Outbox case 45.
		"all messages of a call or none": func(k *kit) {
			k.put(holdfast.Message{ID: "known"})
			for name, bad := range map[string]holdfast.Message{
				"conflict": {ID: "known", Payload: []byte(`other`)},
				"invalid":  {ID: "too far", Kind: "Shout"},
			} {
				ms := fill([]holdfast.Message{{ID: "before"}, bad, {ID: "after"}})
				if _, err := k.Enqueue(k.ctx(), ms...); err == nil {
					k.t.Fatalf("%s: no error", name)
				}
			}
			if got := k.all(holdfast.Query{}); len(got) != 1 {
				k.t.Errorf("%d messages are kept, want 1", len(got))
			}
			equal(k, "claims", idsOf(k.claim(10)), []holdfast.ID{"known"})
		},
		"no messages are no error": func(k *kit) {
			if r, err := k.Enqueue(k.ctx()); err != nil || len(r) != 0 {
				k.t.Errorf("got %v, %v", r, err)
			}
		},
		"the caller's messages are left alone": func(k *kit) {
			ms := []holdfast.Message{{Destination: "a", Endpoint: "E"}}
			k.put(ms...)
			k.reopen()
			if ms[0].ID != "" || ms[0].Source != "" || ms[0].Kind != "" {
				k.t.Errorf("Enqueue changed the message: %+v", ms[0])
			}
		},
		"ids": ids,
		// Outbox case 32: a duration has no zone.
		"a delayed message is due after its delay": func(k *kit) {
			k.put(holdfast.Message{ID: "late", Delay: time.Hour})
			k.nothing()
			k.pass(59 * time.Minute)
			k.nothing()
			k.reopen()
			k.nothing()
			k.pass(time.Minute + time.Second)
			k.one("late")
		},
		"the longest delay and TTL do not overflow": func(k *kit) {
			const most = time.Duration(1<<63 - 1)
			k.put(holdfast.Message{ID: "patient", TTL: most}, holdfast.Message{ID: "never", Delay: most, TTL: most})
			c := k.one("patient")
			if c.Expires < 0 && c.Expires != -1 || c.Expires >= 0 && c.Expires < most/2 {
				k.t.Errorf("expires in %s", c.Expires)
			}
			k.wins(c, failed(most))
			k.nothing()
			k.pass(24 * time.Hour)
			k.nothing()
			k.is("never", holdfast.Pending)
		},
		"a cancelled context stores nothing": func(k *kit) {
			ctx, cancel := cancelled(k.t)
			defer cancel()
			if _, err := k.Enqueue(ctx, fill([]holdfast.Message{{ID: "gone"}})...); err == nil {
				k.t.Error("no error")
			}
			k.nothing()
		},
	})
}

func acceptedAsItWas(k *kit) {
	binary := make([]byte, 256)
	for i := range binary {
		binary[i] = byte(i)
	}
	want := []holdfast.Message{
		{
			ID: "full", Source: "plant-7", Destination: "a", Endpoint: "Order.Create", Kind: holdfast.Command,
			CorrelationID: "c 1", OrderingKey: "k/ä", Payload: binary,
			Headers: map[string]string{"traceparent": "00-1", "x": "ü"}, TTL: time.Hour + time.Microsecond,
			Retry: &holdfast.RetryPolicy{List: []time.Duration{time.Second}, Attempts: 3},
		},
		{ID: "plain", Destination: "a", Endpoint: "E", Source: Source, Kind: holdfast.Signal, Payload: []byte{}},
	}
	given := []holdfast.Message{want[0], {ID: "plain", Destination: "a", Endpoint: "E"}}
	receipts, err := k.Enqueue(k.ctx(), given...)
	if err != nil {
		k.t.Fatal(err)
	}
	equal(k, "receipts", receipts, []holdfast.Receipt{{ID: "full"}, {ID: "plain"}})
	for i := range want {
		want[i].Attempt = holdfast.Attempt{Number: 1, Cycle: 1}
	}
	for _, from := range []string{"memory", "disk"} {
		claims := k.claim(10)
		var got []holdfast.Message
		for _, c := range claims {
			got = append(got, c.Message)
			if c.Failures != 0 || c.Tries != 0 {
				k.t.Errorf("from %s: %s has %d failures and %d tries", from, c.Message.ID, c.Failures, c.Tries)
			}
		}
		equal(k, "messages from "+from, got, want)
		if e := claims[0].Expires; e <= 59*time.Minute || e > time.Hour+time.Second {
			k.t.Errorf("from %s: expires in %s", from, e)
		}
		if e := claims[1].Expires; e >= 0 {
			k.t.Errorf("from %s: expires in %s, want never", from, e)
		}
		k.reopen() // nobody settled: both come back
	}
	for _, m := range want {
		got := k.get(m.ID).Message
		got.Attempt, m.Attempt = holdfast.Attempt{}, holdfast.Attempt{}
		equal(k, "record of "+string(m.ID), got, m)
	}
}

func duplicates(k *kit) {
	m := fill([]holdfast.Message{{ID: "m", Headers: map[string]string{"a": "1"}}})[0]
	again := m
	again.Headers, again.CorrelationID, again.TTL, again.Delay = map[string]string{"b": "2"}, "other", time.Hour, time.Hour
	again.Retry = &holdfast.RetryPolicy{Attempts: 2}
	expect := func(want holdfast.State) {
		k.t.Helper()
		receipts, err := k.Enqueue(k.ctx(), again)
		if err != nil {
			k.t.Fatal(err)
		}
		equal(k, "receipt of the "+want.String()+" message", receipts, []holdfast.Receipt{{ID: "m", State: want, Duplicate: true}})
	}
	k.put(m)
	expect(holdfast.Pending)
	k.reopen()
	expect(holdfast.Pending)
	c := k.one("m")
	expect(holdfast.Claimed)
	k.wins(c, parked())
	expect(holdfast.Parked)
	k.requeue("m")
	k.wins(k.one("m"), delivered())
	expect(holdfast.Delivered)
	k.reopen()
	expect(holdfast.Delivered)
	k.nothing()
	if got := k.get("m").Message; got.CorrelationID != "" || got.TTL != 0 || got.Headers["a"] != "1" {
		k.t.Errorf("the duplicate changed the message: %+v", got)
	}
}

func conflicts(k *kit) {
	m := fill([]holdfast.Message{{ID: "m", Payload: []byte(`1`)}})[0]
	k.put(m)
	for field, change := range map[string]func(*holdfast.Message){
		"kind":         func(m *holdfast.Message) { m.Kind = holdfast.Command },
		"destination":  func(m *holdfast.Message) { m.Destination = "b" },
		"endpoint":     func(m *holdfast.Message) { m.Endpoint = "F" },
		"payload":      func(m *holdfast.Message) { m.Payload = []byte(`2`) },
		"named source": func(m *holdfast.Message) { m.Source = "another" },
	} {
		other := m
		change(&other)
		for _, ms := range [][]holdfast.Message{{other}, {other, {ID: "with", Destination: "a", Endpoint: "E"}}} {
			if _, err := k.Enqueue(k.ctx(), ms...); !errors.Is(err, holdfast.ErrConflict) {
				k.t.Errorf("%s, %d messages: got %v, want a conflict", field, len(ms), err)
			}
		}
	}
	// The store may have another name tomorrow, so a message without a source is the same message.
	k.put(holdfast.Message{ID: "theirs", Source: "plant-7"}, holdfast.Message{ID: "theirs"})
	equal(k, "claims", sorted(idsOf(k.claim(10))), []holdfast.ID{"m", "theirs"})
}

func ids(k *kit) {
	const canonical = "0190a7c2-6f5e-7b1a-8c3d-4e5f60718293"
	forms := []holdfast.ID{
		canonical, "0190a7c26f5e7b1a8c3d4e5f60718293", "{0190A7C2-6F5E-7B1A-8C3D-4E5F60718293}",
		"urn:uuid:0190a7c2-6f5e-7b1a-8c3d-4e5f60718293", holdfast.ID(strings.ToUpper(canonical)),
	}
	for i, form := range forms {
		receipts, err := k.Enqueue(k.ctx(), fill([]holdfast.Message{{ID: form}})...)
		if err != nil {
			k.t.Fatal(err)
		}
		equal(k, "receipt for "+string(form), receipts, []holdfast.Receipt{{ID: canonical, Duplicate: i > 0}})
		if r := k.get(form); r.Message.ID != canonical {
			k.t.Errorf("get %s: got %s", form, r.Message.ID)
		}
	}
	long := holdfast.ID(strings.Repeat("x", holdfast.MaxIDLen))
	texts := []holdfast.ID{"order-42", long, "0190a7c2-6f5e-7b1a-8c3d-4e5f6071829", "~!/?%#'\""}
	for _, id := range texts {
		if got := k.put(holdfast.Message{ID: id})[0]; got != id {
			k.t.Errorf("got id %q, want %q", got, id)
		}
		k.is(id, holdfast.Pending)
	}
	for _, bad := range []holdfast.ID{long + "x", "two words", "tab\t", "ü"} {
		if _, err := k.Enqueue(k.ctx(), fill([]holdfast.Message{{ID: bad}})...); !errors.Is(err, holdfast.ErrInvalid) {
			k.t.Errorf("id %q: got %v, want ErrInvalid", bad, err)
		}
	}
	minted := k.put(make([]holdfast.Message, 50)...)
	seen := map[holdfast.ID]bool{}
	for _, id := range minted {
		if _, ok := id.UUID(); !ok || seen[id] {
			k.t.Errorf("minted %q", id)
		}
		seen[id] = true
	}
	k.reopen()
	want := append(append([]holdfast.ID{canonical}, texts...), minted...)
	equal(k, "claims", sorted(idsOf(k.claim(100))), sorted(want), cmpopts.EquateEmpty())
}
