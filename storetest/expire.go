package storetest

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// expiry tests messages whose TTL is over.
func expiry(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		// OI-06.
		"a message past its TTL is never claimed": func(k *kit) {
			k.put(holdfast.Message{ID: "m", TTL: time.Minute}, holdfast.Message{ID: "n"})
			k.pass(time.Minute + time.Millisecond)
			equal(k, "claims", idsOf(k.claim(10)), []holdfast.ID{"n"})
			r := k.is("m", holdfast.Expired)
			if r.Settled.IsZero() {
				k.t.Error("nothing says when it expired")
			}
			k.expire()
		},
		"a message past its TTL is never claimed after the store was opened again": func(k *kit) {
			k.put(holdfast.Message{ID: "m", TTL: time.Minute})
			k.pass(time.Minute + time.Millisecond)
			k.reopen()
			k.nothing()
			k.is("m", holdfast.Expired)
		},
		"the TTL counts from the first time it is due": func(k *kit) {
			k.put(holdfast.Message{ID: "m", Delay: time.Hour, TTL: time.Minute})
			k.pass(time.Hour + 30*time.Second)
			if c := k.one("m"); c.Expires <= 0 || c.Expires > 31*time.Second {
				k.t.Errorf("expires in %s", c.Expires)
			}
		},
		"a sweep expires what nobody claims": func(k *kit) {
			k.put(many(520, "m", holdfast.Message{TTL: time.Minute})...)
			k.put(many(3, "later", holdfast.Message{TTL: time.Hour})...)
			k.put(many(3, "never", holdfast.Message{})...)
			k.put(many(3, "delayed", holdfast.Message{Delay: time.Hour, TTL: time.Minute})...)
			if n := k.expire(); n != 0 {
				k.t.Errorf("%d expired too early", n)
			}
			k.pass(2 * time.Minute)
			if n := k.expire(); n != 520 {
				k.t.Errorf("%d expired, want 520", n)
			}
			k.reopen()
			k.pass(time.Hour)
			if n := k.expire(); n != 6 {
				k.t.Errorf("%d expired, want 6", n)
			}
			equal(k, "claims", len(k.claim(10)), 3)
		},
		"a parked message expires too": func(k *kit) {
			k.park(holdfast.Message{ID: "m", TTL: time.Minute})
			k.park(holdfast.Message{ID: "n"})
			k.pass(2 * time.Minute)
			if n := k.expire(); n != 1 {
				k.t.Errorf("%d expired, want 1", n)
			}
			k.is("m", holdfast.Expired)
			k.is("n", holdfast.Parked)
		},
		"delivered beats TTL": func(k *kit) {
			k.put(holdfast.Message{ID: "m", TTL: time.Minute})
			c := k.one("m")
			k.pass(2 * time.Minute)
			if n := k.expire(); n != 0 {
				k.t.Errorf("%d expired while it was being delivered", n)
			}
			k.wins(c, delivered())
			k.is("m", holdfast.Delivered)
			k.expire()
			k.is("m", holdfast.Delivered)
		},
		"a message that fails past its TTL expires": func(k *kit) {
			k.put(holdfast.Message{ID: "m", TTL: time.Minute}, holdfast.Message{ID: "n", TTL: time.Minute})
			c := k.claim(2)
			k.pass(2 * time.Minute)
			k.wins(c[0], failed(time.Hour))
			k.wins(c[1], notStarted())
			k.nothing()
			k.expire()
			k.is("m", holdfast.Expired)
			k.is("n", holdfast.Expired)
		},
		"a retry that would come too late expires in time": func(k *kit) {
			k.put(holdfast.Message{ID: "m", TTL: time.Minute})
			k.wins(k.one("m"), failed(time.Hour))
			k.pass(time.Minute + time.Millisecond)
			k.nothing()
			k.is("m", holdfast.Expired)
		},
		// OI-06.
		"an expired message can be requeued with a fresh TTL": func(k *kit) {
			k.put(holdfast.Message{ID: "m", TTL: time.Minute}, holdfast.Message{ID: "n", TTL: time.Minute})
			k.pass(2 * time.Minute)
			k.expire()
			k.requeue("m")
			if _, err := k.Requeue(k.ctx(), "n", holdfast.Requeue{TTL: time.Hour}); err != nil {
				k.t.Fatal(err)
			}
			k.pass(30 * time.Second)
			equal(k, "claims", idsOf(k.claim(10)), []holdfast.ID{"m", "n"})
			k.reopen()
			k.pass(time.Minute)
			equal(k, "claims after the first TTL", idsOf(k.claim(10)), []holdfast.ID{"n"})
			k.reopen()
			k.pass(time.Hour)
			k.nothing()
		},
	})
}
