package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
)

func (k *kit) reschedule(id holdfast.ID, in time.Duration) holdfast.Record {
	k.t.Helper()
	r, err := k.Reschedule(k.ctx(), id, holdfast.Reschedule{In: in, Actor: "anna"})
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

// verbs tests what people may do to a message in each of its states.
func verbs(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		// SF-12, NO-16, F1-44, F1-80: every state has a verb that ends it.
		"each verb in each state":                      eachVerbInEachState,
		"discarded in hand: what was delivered stays":  discardedInHand(delivered(), holdfast.Delivered),
		"discarded in hand: a failed attempt ends it":  discardedInHand(failed(time.Hour), holdfast.Discarded),
		"discarded in hand: a refusal ends it":         discardedInHand(parked(), holdfast.Discarded),
		"discarded in hand: what was not tried ends":   discardedInHand(notStarted(), holdfast.Discarded),
		"discarded in hand: it ends with its owner":    discardedAndLost,
		"discarded in hand: nobody is told of parking": discardedUntold,
		"discarded while it waits for its retry": func(k *kit) {
			k.put(holdfast.Message{ID: "m"})
			k.wins(k.one("m"), failed(time.Minute))
			k.discard("m")
			k.pass(time.Hour)
			k.nothing()
			k.requeue("m")
			if c := k.one("m"); c.Message.Attempt.Cycle != 2 {
				k.t.Errorf("got cycle %d, want 2", c.Message.Attempt.Cycle)
			}
		},
		// F1-95.
		"discarded in a lane that nobody serves": func(k *kit) {
			k.put(holdfast.Message{ID: "m", Destination: "gone"})
			k.discard("m")
			k.reopen()
			k.is("m", holdfast.Discarded)
		},
		"run now": func(k *kit) {
			k.put(holdfast.Message{ID: "late", Delay: time.Hour})
			k.reschedule("late", 0)
			k.wins(k.one("late"), failed(time.Hour))
			k.nothing()
			k.reschedule("late", 0)
			c := k.one("late")
			if c.Failures != 1 || c.Tries != 1 || c.Message.Attempt.Cycle != 1 {
				k.t.Errorf("got %+v, want the second try of the first cycle", c)
			}
		},
		"run later, over a restart": func(k *kit) {
			k.put(holdfast.Message{ID: "m"})
			due := k.reschedule("m", time.Hour).Due
			if wait := due.Sub(k.now()); wait < 59*time.Minute || wait > 61*time.Minute {
				k.t.Errorf("due in %s, want an hour", wait)
			}
			k.nothing()
			k.reopen()
			k.nothing()
			k.pass(time.Hour + time.Second)
			k.one("m")
		},
		// The newer decision holds: the attempt began before it.
		"rescheduled in hand: the settlement keeps what a person said": rescheduledInHand,
		"a decision of the cycle before says nothing": func(k *kit) {
			k.put(holdfast.Message{ID: "m"})
			c := k.one("m")
			k.reschedule("m", 3*time.Hour)
			k.wins(c, parked())
			k.requeue("m")
			k.wins(k.one("m"), failed(time.Minute))
			k.pass(time.Minute + time.Second)
			k.one("m")
		},
		"rescheduled past its TTL": func(k *kit) {
			k.put(holdfast.Message{ID: "m", TTL: time.Hour})
			before := k.get("m")
			for _, in := range []time.Duration{time.Hour, 2 * time.Hour} { // at the instant of its end nobody may deliver it
				if _, err := k.Reschedule(k.ctx(), "m", holdfast.Reschedule{In: in}); !errors.Is(err, holdfast.ErrInvalid) {
					k.t.Errorf("in %s: got %v, want ErrInvalid", in, err)
				}
			}
			equal(k, "the message", k.get("m"), before)
		},
		"the history names who decided": decidedHistory,
		// SF-03, SF-25, F1-94.
		"refused, and its caller was told": func(k *kit) {
			k.put(holdfast.Message{ID: "m", OrderingKey: "key"}, holdfast.Message{ID: "n", OrderingKey: "key"})
			s := parked()
			s.State, s.Reason = holdfast.Discarded, holdfast.ReasonRejected
			k.wins(k.next("m"), s)
			r := k.is("m", holdfast.Discarded)
			if r.Reason != holdfast.ReasonRejected || r.LastError != "it was refused" || r.Settled.IsZero() || k.Counts().Parked != 0 {
				k.t.Errorf("got %+v, %d parked", r, k.Counts().Parked)
			}
			k.next("n")
			k.pass(2 * time.Hour)
			if n := k.purge(holdfast.Retention{Discarded: time.Hour}); n != 1 {
				k.t.Errorf("%d messages purged, want 1", n)
			}
		},
	})
}

// eachVerbInEachState checks the table of Verb.States against the store.
func eachVerbInEachState(k *kit) {
	verbs := map[holdfast.Verb]func(id holdfast.ID) (holdfast.Record, error){
		holdfast.VerbRequeue: func(id holdfast.ID) (holdfast.Record, error) {
			return k.Requeue(k.ctx(), id, holdfast.Requeue{Actor: "anna"})
		},
		holdfast.VerbDiscard: func(id holdfast.ID) (holdfast.Record, error) { return k.Discard(k.ctx(), id, "anna") },
		holdfast.VerbReschedule: func(id holdfast.ID) (holdfast.Record, error) {
			return k.Reschedule(k.ctx(), id, holdfast.Reschedule{In: time.Minute, Actor: "anna"})
		},
	}
	for verb, do := range verbs {
		lane := verb.String()
		for state, id := range k.standing(lane) {
			before := k.get(id)
			r, err := do(id)
			if !verb.From(state) {
				if !errors.Is(err, holdfast.ErrState) {
					k.t.Errorf("%s of a message that is %s: got %v, want ErrState", verb, state, err)
				}
				equal(k, "a refused decision about "+string(id), k.get(id), before) // including each instant (F1-47)
				continue
			}
			want := verb.LeadsTo()
			if state == holdfast.Claimed { // after its attempt
				want = holdfast.Claimed
			}
			if err != nil || r.State != want || r.Discarding != (verb == holdfast.VerbDiscard && state == holdfast.Claimed) {
				k.t.Errorf("%s of a message that is %s: got %s, %v, want %s", verb, state, r.State, err, want)
			}
			if r.Discarding {
				if _, err := do(id); !errors.Is(err, holdfast.ErrState) {
					k.t.Errorf("discarded twice: got %v, want ErrState", err)
				}
			}
		}
	}
	for _, s := range []holdfast.State{holdfast.Pending, holdfast.Claimed, holdfast.Parked, holdfast.Expired} {
		if !holdfast.VerbDiscard.From(s) || !s.CanBecome(holdfast.Discarded) {
			k.t.Errorf("no verb ends a message that is %s", s)
		}
	}
}

func discardedInHand(with holdfast.Settlement, want holdfast.State) func(k *kit) {
	return func(k *kit) {
		k.t.Helper()
		k.put(holdfast.Message{ID: "m", OrderingKey: "key"}, holdfast.Message{ID: "next", OrderingKey: "key"})
		c := k.next("m")
		if r := k.discard("m"); r.State != holdfast.Claimed || !r.Discarding {
			k.t.Errorf("got %s, discarding %t, want what is in hand to be discarded", r.State, r.Discarding)
		}
		k.nothing() // none of its key
		k.wins(c, with)
		r := k.is("m", want)
		if r.Discarding || want == holdfast.Discarded && (r.Reason != holdfast.ReasonOperator || r.Settled.IsZero() || k.Counts().Parked > 0) {
			k.t.Errorf("got %+v", r)
		}
		k.recount()
		k.wins(k.next("next"), delivered())
		if want == holdfast.Discarded {
			k.requeue("m")
			k.wins(k.next("m"), failed(0)) // decisions of the previous cycle are over
			k.next("m")
		}
	}
}

// discardedAndLost opens the store again without a settlement, as if the process had died: the
// decision is on disk.
func discardedAndLost(k *kit) {
	k.put(holdfast.Message{ID: "m", OrderingKey: "key"}, holdfast.Message{ID: "next", OrderingKey: "key"})
	late := k.next("m")
	k.discard("m")
	k.reopen()
	r := k.is("m", holdfast.Discarded)
	if last := r.History[len(r.History)-1]; last.Kind != holdfast.GivenUp || last.State != holdfast.Discarded || last.Actor != "anna" {
		k.t.Errorf("last event %+v, want that it was discarded by anna", last)
	}
	if k.settle(late, delivered()) {
		k.t.Error("the former owner's settlement took effect")
	}
	k.wins(k.next("next"), delivered())
	k.nothing()
}

func discardedUntold(k *kit) {
	if _, err := k.NotifyEnded(k.ctx(), true, true); err != nil {
		k.t.Fatal(err)
	}
	k.put(holdfast.Message{ID: "m"})
	c := k.one("m")
	k.discard("m")
	k.wins(c, parked())
	if got := k.claimOf(holdfast.EndedDestination, 5); len(got) > 0 {
		k.t.Errorf("%d notices, want none", len(got))
	}
}

func rescheduledInHand(k *kit) {
	k.put(holdfast.Message{ID: "later"}, holdfast.Message{ID: "sooner"}, holdfast.Message{ID: "back"}, holdfast.Message{ID: "done"})
	c := k.claim(4)
	k.reschedule("later", 3*time.Hour)
	k.reschedule("sooner", 3*time.Hour)
	k.reschedule("sooner", time.Minute) // the newer one
	k.reschedule("back", time.Hour)
	k.reschedule("done", time.Hour)
	k.wins(c[0], failed(time.Minute))
	k.wins(c[1], failed(time.Hour))
	k.wins(c[2], notStarted())
	k.wins(c[3], delivered())
	k.nothing()
	k.pass(time.Minute + time.Second)
	k.wins(k.one("sooner"), failed(time.Minute)) // an attempt after it: by its policy
	k.nothing()
	k.pass(time.Minute + time.Second)
	k.wins(k.one("sooner"), delivered())
	k.pass(time.Hour)
	k.wins(k.one("back"), delivered())
	k.nothing()
	k.pass(2 * time.Hour)
	k.wins(k.one("later"), delivered())
	k.is("done", holdfast.Delivered)
}

func decidedHistory(k *kit) {
	type e = holdfast.Entry
	k.put(holdfast.Message{ID: "m", Delay: time.Hour})
	k.reschedule("m", time.Minute)
	k.reschedule("m", 0)
	c := k.one("m")
	k.discard("m")
	k.wins(c, failed(time.Hour))
	k.requeue("m")
	want := []e{
		{Kind: holdfast.Enqueued, Cycle: 1},
		{Kind: holdfast.Rescheduled, Cycle: 1, Took: time.Minute, Actor: "anna"},
		{Kind: holdfast.Rescheduled, Cycle: 1, Actor: "anna"},
		{Kind: holdfast.GivenUp, State: holdfast.Claimed, Reason: holdfast.ReasonOperator, Cycle: 1, Actor: "anna"},
		{Kind: holdfast.Attempted, Cycle: 1, Attempt: 1, Charged: true, Code: "busy", Error: "it is busy"},
		{Kind: holdfast.GivenUp, State: holdfast.Discarded, Reason: holdfast.ReasonOperator, Cycle: 1, Attempt: 1, Actor: "anna"},
		{Kind: holdfast.Requeued, Cycle: 2, Actor: "anna"},
	}
	for i := range want {
		want[i].ID, want[i].Destination = "m", "a"
	}
	equal(k, "history", k.get("m").History, want, cmpopts.IgnoreFields(e{}, "Seq", "At"))
}
