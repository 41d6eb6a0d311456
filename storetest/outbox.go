package storetest

import (
	"errors"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
)

// outbox tests what people see of the messages, and what they may do to them.
func outbox(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		// Outbox case 26.
		"a record tells everything": recordTells,
		"history":                   history,
		"unknown messages": func(k *kit) {
			_, err := k.Get(k.ctx(), "unknown")
			_, err2 := k.Requeue(k.ctx(), "unknown", holdfast.Requeue{})
			_, err3 := k.Discard(k.ctx(), "unknown", "anna")
			_, err4 := k.Reschedule(k.ctx(), "unknown", holdfast.Reschedule{})
			for _, err := range []error{err, err2, err3, err4} {
				if !errors.Is(err, holdfast.ErrNotFound) {
					k.t.Errorf("got %v, want ErrNotFound", err)
				}
			}
			_, err = k.Get(k.ctx(), "two words")
			_, err2 = k.Requeue(k.ctx(), "", holdfast.Requeue{})
			_, err3 = k.Discard(k.ctx(), holdfast.ID(strings.Repeat("x", 200)), "anna")
			_, err4 = k.Requeue(k.ctx(), k.park(holdfast.Message{}), holdfast.Requeue{TTL: -1})
			_, err5 := k.Reschedule(k.ctx(), k.put(holdfast.Message{})[0], holdfast.Reschedule{In: -1})
			for _, err := range []error{err, err2, err3, err4, err5} {
				if !errors.Is(err, holdfast.ErrInvalid) {
					k.t.Errorf("got %v, want ErrInvalid", err)
				}
			}
		},
		"a requeue starts a new cycle": func(k *kit) {
			id := k.put(holdfast.Message{ID: "m", TTL: time.Hour})[0]
			k.wins(k.one(id), failed(0))
			k.wins(k.one(id), parked())
			k.pass(10 * time.Minute)
			r, err := k.Requeue(k.ctx(), id, holdfast.Requeue{Force: true, Actor: "anna"})
			if err != nil {
				k.t.Fatal(err)
			}
			if r.State != holdfast.Pending || r.Failures != 0 || r.Tries != 0 || r.Cycle != 2 || r.Reason != "" || !r.Settled.IsZero() {
				k.t.Errorf("got %+v", r)
			}
			if left := r.Expires.Sub(r.Due); left < 59*time.Minute || left > 61*time.Minute {
				k.t.Errorf("expires %s after it is due, want an hour", left)
			}
			c := k.one(id)
			if a := c.Message.Attempt; !a.Forced || a.Cycle != 2 || a.Number != 1 || a.FirstAgo < 10*time.Minute-time.Millisecond || a.FirstAgo > 11*time.Minute {
				k.t.Errorf("got attempt %+v", a)
			}
			k.wins(c, parked())
			k.requeue(id)
			if c := k.one(id); c.Message.Attempt.Forced {
				k.t.Error("a force of the cycle before is still on")
			}
		},
		// Outbox cases 1, 6; SF-09.
		"a decision is not overwritten by a late settlement": func(k *kit) {
			k.put(holdfast.Message{ID: "m"})
			late := k.one("m")
			k.wins(late, parked())
			k.discard("m")
			if k.settle(late, delivered()) {
				k.t.Error("the late settlement took effect")
			}
			r := k.is("m", holdfast.Discarded)
			if n := len(r.History); n != 3 {
				k.t.Errorf("%d events, want 3: enqueued, attempted, discarded", n)
			}
		},
		"lists": lists,
		"a page of claimed messages, of messages that are not": func(k *kit) {
			k.put(many(30, "m", holdfast.Message{})...)
			claims := k.claim(7)
			var want []holdfast.ID
			for _, c := range slices.Backward(claims) {
				want = append(want, c.Message.ID)
			}
			for limit := 1; limit < 9; limit++ {
				equal(k, "claimed", recordIDs(k.all(holdfast.Query{States: []holdfast.State{holdfast.Claimed}, Limit: limit})), want)
			}
			if n := len(k.all(holdfast.Query{States: []holdfast.State{holdfast.Pending}, Limit: 2})); n != 23 {
				k.t.Errorf("%d pending, want 23", n)
			}
		},
	})
}

func recordTells(k *kit) {
	m := fill([]holdfast.Message{{
		ID: "m", Source: "plant-7", Kind: holdfast.PushCall, CorrelationID: "c", OrderingKey: "k", Payload: []byte(`{"a":1}`),
		Headers: map[string]string{"h": "v"}, TTL: time.Hour, Retry: &holdfast.RetryPolicy{Attempts: 9},
	}})[0]
	k.put(m)
	k.pass(time.Second)
	k.wins(k.one("m"), failed(time.Minute))
	r := k.is("m", holdfast.Pending)
	m.Attempt = holdfast.Attempt{Number: 1, Cycle: 1}
	want := holdfast.Record{Message: m, Failures: 1, Tries: 1, Cycle: 1, LastError: "it is busy", LastCode: "busy", Size: 7}
	equal(k, "record", r, want, cmpopts.IgnoreFields(holdfast.Record{}, "Seq", "Created", "Due", "Expires", "LastAttempt", "History"))
	near := func(what string, got, want time.Time) {
		k.t.Helper()
		if d := got.Sub(want); d < -5*time.Second || d > 5*time.Second {
			k.t.Errorf("%s is %s, want about %s", what, got, want)
		}
		if got.Location() != time.UTC {
			k.t.Errorf("%s is not in UTC", what)
		}
	}
	now := k.now()
	near("created", r.Created, now.Add(-time.Second))
	near("due", r.Due, now.Add(time.Minute))
	near("expires", r.Expires, now.Add(time.Hour))
	near("last attempt", r.LastAttempt, now)
	k.put(holdfast.Message{ID: "delivered"}, holdfast.Message{ID: "ends", TTL: time.Second, Destination: "b"})
	k.wins(k.one("delivered"), delivered())
	near("last attempt of what is delivered", k.get("delivered").LastAttempt, k.now())
	k.pass(2 * time.Second)
	k.expire()
	if r := k.is("ends", holdfast.Expired); !r.LastAttempt.IsZero() || r.Settled.IsZero() {
		k.t.Errorf("never tried, and ended at %s: the last attempt is %s", r.Settled, r.LastAttempt)
	}
	p := k.all(holdfast.Query{States: []holdfast.State{holdfast.Pending}})[0]
	want.Message.Payload = nil
	equal(k, "record of the list", p, want, cmpopts.IgnoreFields(holdfast.Record{}, "Seq", "Created", "Due", "Expires", "LastAttempt"))

	k.pass(2 * time.Minute)
	k.wins(k.one("m"), parked())
	r = k.is("m", holdfast.Parked)
	if r.Reason != holdfast.ReasonPermanent || r.LastError != "it was refused" || !r.Due.IsZero() || r.Failures != 2 {
		k.t.Errorf("got %+v", r)
	}
	near("settled", r.Settled, k.now())
	r = k.discard("m")
	if r.State != holdfast.Discarded || r.Reason != holdfast.ReasonOperator {
		k.t.Errorf("got %s, reason %q", r.State, r.Reason)
	}
}

func history(k *kit) {
	k.put(holdfast.Message{ID: "m"})
	fail := failed(0)
	fail.Maybe, fail.Took, fail.Outcome = true, 3*time.Second, holdfast.Transient
	k.wins(k.one("m"), fail)
	k.wins(k.one("m"), parked())
	k.requeue("m")
	k.wins(k.one("m"), parked())
	k.discard("m")
	k.reopen()
	type e = holdfast.Entry
	want := []e{
		{Kind: holdfast.Enqueued, Cycle: 1},
		{Kind: holdfast.Attempted, Cycle: 1, Attempt: 1, Charged: true, Code: "busy", Error: "it is busy", Maybe: true, Took: 3 * time.Second},
		{
			Kind: holdfast.Attempted, State: holdfast.Parked, Reason: holdfast.ReasonPermanent, Cycle: 1, Attempt: 2,
			Outcome: holdfast.Permanent, Charged: true, Code: "refused", Error: "it was refused",
		},
		{Kind: holdfast.Requeued, Cycle: 2, Actor: "anna"},
		{
			Kind: holdfast.Attempted, State: holdfast.Parked, Reason: holdfast.ReasonPermanent, Cycle: 2, Attempt: 1,
			Outcome: holdfast.Permanent, Charged: true, Code: "refused", Error: "it was refused",
		},
		{Kind: holdfast.GivenUp, State: holdfast.Discarded, Reason: holdfast.ReasonOperator, Cycle: 2, Attempt: 1, Actor: "anna"},
	}
	for i := range want {
		want[i].ID, want[i].Destination = "m", "a"
	}
	ignore := cmpopts.IgnoreFields(e{}, "Seq", "At")
	got := k.get("m").History
	equal(k, "history", got, want, ignore)
	for i := range got {
		if got[i].At.IsZero() || i > 0 && got[i].At.Before(got[i-1].At) {
			k.t.Errorf("event %d happened at %s, the one before at %s", i, got[i].At, got[max(i-1, 0)].At)
		}
	}

	k.put(holdfast.Message{ID: "ok", TTL: time.Minute}, holdfast.Message{ID: "late", TTL: time.Minute})
	for _, c := range k.claim(1) {
		k.wins(c, delivered())
	}
	k.pass(2 * time.Minute)
	k.expire()
	equal(k, "history of a delivery", k.get("ok").History, []e{
		{ID: "ok", Destination: "a", Kind: holdfast.Enqueued, Cycle: 1},
		{ID: "ok", Destination: "a", Kind: holdfast.Attempted, State: holdfast.Delivered, Outcome: holdfast.Succeeded, Cycle: 1, Attempt: 1},
	}, ignore)
	equal(k, "history of an expiry", k.get("late").History, []e{
		{ID: "late", Destination: "a", Kind: holdfast.Enqueued, Cycle: 1},
		{ID: "late", Destination: "a", Kind: holdfast.TimedOut, State: holdfast.Expired, Cycle: 1},
	}, ignore)
}

// standing makes one message of each state in a lane, named after it.
func (k *kit) standing(lane string) map[holdfast.State]holdfast.ID {
	k.t.Helper()
	name := func(s holdfast.State) holdfast.ID { return holdfast.ID(lane + "-" + s.String()) }
	made := map[holdfast.State]holdfast.ID{}
	for _, s := range []holdfast.State{holdfast.Delivered, holdfast.Parked, holdfast.Discarded, holdfast.Expired, holdfast.Claimed, holdfast.Pending} {
		m := holdfast.Message{ID: name(s), Destination: lane}
		if s == holdfast.Expired {
			m.TTL = time.Millisecond
		}
		made[s] = k.put(m)[0]
		switch s {
		case holdfast.Expired:
			k.pass(time.Second)
			k.expire()
		case holdfast.Pending:
		case holdfast.Claimed:
			k.claimOf(lane, 1)
		case holdfast.Delivered:
			k.wins(k.claimOf(lane, 1)[0], delivered())
		case holdfast.Parked, holdfast.Discarded:
			k.wins(k.claimOf(lane, 1)[0], parked())
		}
		if s == holdfast.Discarded {
			k.discard(made[s])
		}
		k.is(made[s], s)
	}
	return made
}

func recordIDs(list []holdfast.Record) []holdfast.ID {
	ids := make([]holdfast.ID, len(list))
	for i, r := range list {
		ids[i] = r.Message.ID
	}
	return ids
}

func lists(k *kit) {
	type row struct {
		id    holdfast.ID
		lane  string
		state holdfast.State
	}
	for _, lane := range []string{"a", "b"} {
		k.standing(lane)
		for _, c := range k.claimOf(lane, 1) {
			k.wins(c, failed(0))
		}
		k.put(many(3, lane, holdfast.Message{Destination: lane})...)
		k.wins(k.claimOf(lane, 1)[0], parked())
		k.claimOf(lane, 1)
	}
	var rows []row // newest first
	for _, r := range k.all(holdfast.Query{Limit: 500}) {
		rows = append(rows, row{r.Message.ID, r.Message.Destination, r.State})
		equal(k, "state of "+string(r.Message.ID), r.State, k.get(r.Message.ID).State)
	}
	if len(rows) != 18 {
		k.t.Fatalf("%d messages are listed, want 18", len(rows))
	}
	every := []holdfast.State{holdfast.Pending, holdfast.Claimed, holdfast.Delivered, holdfast.Parked, holdfast.Expired, holdfast.Discarded}
	for set := range 1 << len(every) {
		if n := bits.OnesCount(uint(set)); n > 2 && n < len(every) {
			continue // one, two, and all of them
		}
		var states []holdfast.State
		for i, s := range every {
			if set&(1<<i) != 0 {
				states = append(states, s)
			}
		}
		for _, lane := range []string{"", "b"} {
			var want []holdfast.ID
			for _, r := range rows {
				if (lane == "" || r.lane == lane) && (len(states) == 0 || slices.Contains(states, r.state)) {
					want = append(want, r.id)
				}
			}
			limit := 1 + 3*(set%2)
			got := recordIDs(k.all(holdfast.Query{States: states, Destination: lane, Limit: limit}))
			if d := cmp.Diff(got, want, cmpopts.EquateEmpty()); d != "" {
				k.t.Fatalf("list of %v in %q by %d (-got +want):\n%s", states, lane, limit, d)
			}
		}
	}
	if got := k.all(holdfast.Query{Destination: "unknown"}); len(got) > 0 {
		k.t.Errorf("an unknown lane lists %v", recordIDs(got))
	}
	for _, after := range []string{"-1", "?", "ZZZZZZZZZZZZZZZZZ", "xyz"} {
		if _, err := k.List(k.ctx(), holdfast.Query{After: after}); !errors.Is(err, holdfast.ErrInvalid) {
			k.t.Errorf("after %q: got %v, want ErrInvalid", after, err)
		}
	}
}
