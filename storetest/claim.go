package storetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

func cancelled(t testing.TB) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}

// claims tests how messages are claimed and settled.
func claims(t *testing.T, m Maker) {
	t.Helper()
	m.meet(t, map[string]func(k *kit){
		// Outbox case 33.
		"two owners never share a claim": twoOwners,
		"wake":                           wake,
		"an attempt that outlives its dispatcher is settled": lateAttempt,
	})
	m.run(t, map[string]func(k *kit){
		"first attempts beside many that are due again": firstAttempts,
		"as many as asked for, oldest first, each once": func(k *kit) {
			want := k.put(many(7, "m", holdfast.Message{})...)
			got := idsOf(k.claim(3))
			got = append(got, idsOf(k.claim(10))...)
			equal(k, "claims", got, want)
			k.nothing()
			k.reopen()
			equal(k, "claims after opening again", idsOf(k.drain()), want)
		},
		"nothing is taken from lanes that are not asked for": func(k *kit) {
			k.put(many(60, "a", holdfast.Message{})...)
			k.put(holdfast.Message{ID: "b", Destination: "b"})
			equal(k, "claims", idsOf(k.claimOf("b", 10)), []holdfast.ID{"b"})
			if got := k.claimOf("unknown", 10); len(got) > 0 {
				k.t.Errorf("claimed %v of an unknown lane", idsOf(got))
			}
			if got := k.claim(0); len(got) > 0 {
				k.t.Errorf("claimed %v, asked for none", idsOf(got))
			}
			b, err := k.Claim(k.ctx(), map[string]int{"a": 5, "b": 5})
			if err != nil || len(b.Claims) != 5 {
				k.t.Errorf("got %d claims, %v; want 5 of a", len(b.Claims), err)
			}
			if n := len(k.claim(1000)); n != 55 {
				k.t.Errorf("got %d more of a, want 55", n)
			}
		},
		"Next tells when the next message is due": func(k *kit) {
			if b, err := k.Claim(k.ctx(), map[string]int{"a": 1}); err != nil || len(b.Next) > 0 {
				k.t.Errorf("an empty lane: next in %v, %v; want none", b.Next, err)
			}
			k.put(holdfast.Message{ID: "late", Delay: time.Minute}, holdfast.Message{ID: "other", Destination: "b", Delay: time.Second})
			if b, err := k.Claim(k.ctx(), map[string]int{"a": 1}); err != nil || len(b.Next) != 1 || b.Next["a"] > time.Minute+time.Millisecond {
				k.t.Errorf("next in %v, %v; want at most a minute", b.Next, err)
			}
			k.put(many(2, "now", holdfast.Message{})...)
			if b, err := k.Claim(k.ctx(), map[string]int{"a": 1}); err != nil || len(b.Claims) != 1 || len(b.Next) != 1 || b.Next["a"] != 0 {
				k.t.Errorf("%d claims, next in %v, %v; want 1 and 0", len(b.Claims), b.Next, err)
			}
		},
		"what waits is due at once where its destination works": hastened,
		// Outbox case 1.
		"a settlement takes effect once": settledOnce,
		// Outbox cases 25, 41, 56.
		"a claim that went to another owner cannot be settled": func(k *kit) {
			k.put(holdfast.Message{ID: "m"})
			old := k.one("m")
			k.reopen() // as if the owner had been considered dead
			now := k.one("m")
			if k.settle(old, delivered()) {
				k.t.Error("the former owner's settlement took effect")
			}
			k.is("m", holdfast.Claimed)
			k.wins(now, delivered())
		},
		"a retry waits": func(k *kit) {
			k.put(holdfast.Message{ID: "m"})
			k.wins(k.one("m"), failed(100*time.Second))
			k.nothing()
			k.pass(80 * time.Second) // a slow machine takes some seconds for the following lines
			k.nothing()
			k.reopen()
			k.nothing()
			k.pass(20*time.Second + time.Millisecond)
			c := k.one("m")
			if c.Failures != 1 || c.Tries != 1 || c.Message.Attempt.Number != 2 || c.Message.Attempt.Cycle != 1 {
				k.t.Errorf("got %+v, %d failures, %d tries", c.Message.Attempt, c.Failures, c.Tries)
			}
			if ago := c.Message.Attempt.FirstAgo; ago < 100*time.Second-time.Millisecond || ago > 120*time.Second {
				k.t.Errorf("first tried %s ago, want 100 s", ago)
			}
			k.wins(c, failed(-time.Hour)) // at once, not never
			k.one("m")
		},
		// Outbox case 9.
		"what was not charged does not count as a failure": func(k *kit) {
			k.put(holdfast.Message{ID: "m"})
			for range 50 {
				s := failed(0)
				s.Charged, s.Outcome = false, holdfast.Unreachable
				k.wins(k.one("m"), s)
			}
			if c := k.one("m"); c.Failures != 0 || c.Tries != 50 {
				k.t.Errorf("got %d failures, %d tries", c.Failures, c.Tries)
			}
		},
		// Outbox cases 9, 20, 21.
		"not started is as if never claimed": func(k *kit) {
			k.put(many(3, "m", holdfast.Message{})...)
			claims := k.claim(3)
			k.wins(claims[1], notStarted())
			c := k.one("m-1")
			if c.Failures != 0 || c.Tries != 0 || c.Message.Attempt.Number != 1 || c.Message.Attempt.FirstAgo != 0 {
				k.t.Errorf("got %+v", c)
			}
			if c.Token == claims[1].Token {
				k.t.Error("the new claim has the old one's number")
			}
			k.wins(c, failed(0))
			k.wins(k.one("m-1"), notStarted())
			if c := k.one("m-1"); c.Failures != 1 || c.Tries != 1 {
				k.t.Errorf("got %d failures, %d tries", c.Failures, c.Tries)
			}
		},
		"a settlement to a state that no claim leads to changes nothing": func(k *kit) {
			k.put(many(2, "m", holdfast.Message{})...)
			c := k.claim(2)
			for _, bad := range []holdfast.State{holdfast.Claimed, holdfast.Expired, 77} {
				if _, err := k.Settle(k.ctx(),
					holdfast.Settlement{Seq: c[0].Seq, Token: c[0].Token, State: holdfast.Delivered},
					holdfast.Settlement{Seq: c[1].Seq, Token: c[1].Token, State: bad}); err == nil {
					k.t.Fatalf("%s: no error", bad)
				}
			}
			k.is("m-0", holdfast.Claimed)
			k.wins(c[0], delivered())
			k.wins(c[1], delivered())
		},
		// Outbox cases 53, 57; edge case 10.
		"claims that nobody settled come back": func(k *kit) {
			k.put(many(100, "m", holdfast.Message{})...)
			for i, c := range k.claim(100) {
				if i < 3 {
					k.wins(c, delivered())
				}
			}
			k.reopen()
			if n := len(k.drain()); n != 97 {
				k.t.Errorf("%d messages can be claimed again, want 97", n)
			}
		},
		"fresh messages do not starve retries": func(k *kit) {
			k.put(holdfast.Message{ID: "retry"})
			k.wins(k.one("retry"), failed(time.Second))
			k.pass(2 * time.Second)
			for range 20 {
				k.put(holdfast.Message{}, holdfast.Message{})
				for _, c := range k.claim(2) {
					if c.Message.ID == "retry" {
						return
					}
					k.wins(c, delivered())
				}
			}
			k.t.Error("the retry was never claimed")
		},
	})
}

func settledOnce(k *kit) {
	for name, s := range map[string]holdfast.Settlement{"retry": failed(0), "delivered": delivered(), "parked": parked(), "not-started": notStarted()} {
		id := holdfast.ID(name[:3])
		k.put(holdfast.Message{ID: id, Destination: name})
		c := k.claimOf(name, 1)[0]
		s.Seq, s.Token = c.Seq, c.Token
		other := s
		other.Token++
		won, err := k.Settle(k.ctx(), other, s, s)
		if err != nil {
			k.t.Fatal(err)
		}
		equal(k, name, won, []bool{false, true, false})
		if k.settle(c, delivered()) {
			k.t.Errorf("%s: a second settlement took effect", name)
		}
	}
	if won, err := k.Settle(k.ctx()); err != nil || len(won) != 0 {
		k.t.Errorf("nothing to settle: %v, %v", won, err)
	}
	if k.settle(holdfast.Claim{Seq: 1 << 40, Token: 1}, delivered()) {
		k.t.Error("a settlement of nothing took effect")
	}
}

func twoOwners(k *kit) {
	const messages = 100
	k.put(many(messages, "m", holdfast.Message{})...)
	var mu sync.Mutex
	seen := map[holdfast.ID]int{}
	var owners sync.WaitGroup
	for range 2 {
		owners.Go(func() {
			for {
				b, err := k.Claim(k.ctx(), map[string]int{"a": 7})
				if err != nil {
					k.t.Error(err)
					return
				}
				if len(b.Claims) == 0 {
					return
				}
				for _, c := range b.Claims {
					mu.Lock()
					seen[c.Message.ID]++
					mu.Unlock()
					if won, err := k.Settle(k.ctx(), holdfast.Settlement{Seq: c.Seq, Token: c.Token, State: holdfast.Delivered}); err != nil || !won[0] {
						k.t.Errorf("settle %s: %v, %v", c.Message.ID, won, err)
					}
				}
			}
		})
	}
	owners.Wait()
	for id, n := range seen {
		if n != 1 {
			k.t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if len(seen) != messages {
		k.t.Errorf("%d messages were claimed, want %d", len(seen), messages)
	}
}

func wake(k *kit) {
	w := k.Wake()
	woken := func(what string, want ...string) {
		k.t.Helper()
		for len(w.C) > 0 {
			<-w.C
		}
		got, all := w.Take(nil)
		if all {
			got = append(got, "all")
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			k.t.Errorf("%s: woken for %q, want %q", what, got, want)
		}
	}
	woken("at first", "all")
	woken("before anything happened")
	k.put(holdfast.Message{ID: "m"})
	if len(w.C) == 0 {
		k.t.Error("an enqueue has not rung")
	}
	woken("by an enqueue", "a")
	k.put(holdfast.Message{}, holdfast.Message{Destination: "b"}, holdfast.Message{}, holdfast.Message{Destination: "c", Delay: time.Hour})
	woken("by enqueues to several destinations", "a", "b", "c")
	k.wins(k.one("m"), parked())
	k.claim(2)
	woken("before the requeue")
	k.requeue("m")
	woken("by a requeue", "a")
	w.Stop()
	k.put(holdfast.Message{})
	woken("after its end")
}
