package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
)

// week is the retention in the cases.
const week = 7 * 24 * time.Hour

// arrived returns a message as a receiver gets it.
func arrived(id holdfast.ID) holdfast.Message {
	return holdfast.Message{
		ID: id, Source: "plant-7", Endpoint: "E", Kind: holdfast.Signal, Payload: []byte(`{}`),
		Attempt: holdfast.Attempt{Number: 1, Cycle: 1, RetryFor: time.Hour},
	}
}

func (k *kit) keep(ms ...holdfast.Message) []holdfast.Result {
	k.t.Helper()
	results, err := k.Keep(k.ctx(), week, ms...)
	if err != nil || len(results) != len(ms) {
		k.t.Fatalf("keep %d messages: %d results, %v", len(ms), len(results), err)
	}
	return results
}

func (k *kit) record(m holdfast.Message, response string) holdfast.Result {
	k.t.Helper()
	results, err := k.Record(k.ctx(), week, holdfast.Processed{Message: m, Response: []byte(response)})
	if err != nil {
		k.t.Fatal(err)
	}
	return results[0]
}

// known looks a message up. An error counts as known.
func (k *kit) known(m holdfast.Message) (bool, holdfast.Result) {
	k.t.Helper()
	known, results, err := k.Known(k.ctx(), week, m)
	if err != nil {
		k.t.Fatal(err)
	}
	return known[0], results[0]
}

func (k *kit) waiting(q holdfast.KeptQuery) (ids []holdfast.ID) {
	k.t.Helper()
	for range 10000 {
		p, err := k.Kept(k.ctx(), q)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, m := range p.Messages {
			ids = append(ids, m.Message.ID)
		}
		if q.After = p.Next; q.After == 0 {
			return ids
		}
	}
	k.t.Fatal("the list has no end")
	return nil
}

func (k *kit) sweepInbox() (total int) {
	k.t.Helper()
	for {
		n, more, err := k.SweepInbox(k.ctx(), week)
		if err != nil {
			k.t.Fatal(err)
		}
		if total += n; !more {
			return total
		}
	}
}

func took(r holdfast.Result, id holdfast.ID, duplicate bool, response string) error {
	switch {
	case r.Err != nil:
		return r.Err
	case r.Receipt.ID != id || r.Receipt.State != holdfast.Delivered || r.Receipt.Duplicate != duplicate || string(r.Receipt.Response) != response:
		return fmt.Errorf("got %+v with response %q, want %s, duplicate %t, response %q", r.Receipt, r.Receipt.Response, id, duplicate, response)
	}
	return nil
}

func (k *kit) ok(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Error(err)
	}
}

func (k *kit) fails(err, want error) {
	k.t.Helper()
	if !errors.Is(err, want) {
		k.t.Errorf("got %v, want %v", err, want)
	}
}

// inboxLog tests what a node's own endpoints need from an inbox.
func inboxLog(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"keep, fetch, done": keptLife,
		"each message of a batch has its own result": func(k *kit) {
			k.keep(arrived("known"))
			conflict, nameless, sourceless := arrived("known"), arrived("two words"), arrived("s")
			conflict.Payload, sourceless.Source = []byte(`other`), ""
			r := k.keep(arrived("1"), conflict, nameless, arrived("known"), sourceless, arrived("1"), arrived("2"))
			k.ok(took(r[0], "1", false, ""))
			k.fails(r[1].Err, holdfast.ErrConflict)
			k.fails(r[2].Err, holdfast.ErrInvalid)
			k.ok(took(r[3], "known", true, ""))
			k.fails(r[4].Err, holdfast.ErrInvalid)
			k.ok(took(r[5], "1", true, ""))
			k.ok(took(r[6], "2", false, ""))
			equal(k, "kept", k.waiting(holdfast.KeptQuery{}), []holdfast.ID{"known", "1", "2"})
		},
		"content is kind, endpoint and payload": func(k *kit) {
			k.keep(arrived("m"))
			same := arrived("m")
			same.Headers, same.CorrelationID = map[string]string{"a": "1"}, "c"
			k.ok(took(k.keep(same)[0], "m", true, ""))
			for field, change := range map[string]func(*holdfast.Message){
				"kind":     func(m *holdfast.Message) { m.Kind = holdfast.Command },
				"endpoint": func(m *holdfast.Message) { m.Endpoint = "F" },
				"payload":  func(m *holdfast.Message) { m.Payload = []byte(`{} `) },
			} {
				m := arrived("m")
				change(&m)
				if r := k.keep(m)[0]; !errors.Is(r.Err, holdfast.ErrConflict) {
					k.t.Errorf("%s: keep: got %v, want a conflict", field, r.Err)
				}
				if known, r := k.known(m); !known || !errors.Is(r.Err, holdfast.ErrConflict) {
					k.t.Errorf("%s: known: got %t, %v, want a conflict", field, known, r.Err)
				}
			}
			other := arrived("m")
			other.Source, other.Payload = "plant-8", []byte(`other`) // the same id from another sender is another id
			k.ok(took(k.keep(other)[0], "m", false, ""))
		},
		"an empty payload and no kind are kept": func(k *kit) {
			m := arrived("m")
			m.Payload, m.Kind = nil, ""
			k.ok(took(k.keep(m)[0], "m", false, ""))
			m.Payload, m.Kind = []byte{}, holdfast.Signal
			k.ok(took(k.keep(m)[0], "m", true, ""))
			p, err := k.Kept(k.ctx(), holdfast.KeptQuery{})
			if err != nil || len(p.Messages) != 1 || p.Messages[0].Message.Kind != holdfast.Signal || len(p.Messages[0].Message.Payload) != 0 {
				k.t.Errorf("got %+v, %v", p, err)
			}
		},
		"forms of a UUID are one id": func(k *kit) {
			const id = "0190a7c2-6f5e-7b1a-8c3d-4e5f60718293"
			k.ok(took(k.record(arrived("0190A7C26F5E7B1A8C3D4E5F60718293"), "r"), id, false, "r"))
			known, r := k.known(arrived("urn:uuid:" + id))
			k.ok(took(r, id, true, "r"))
			if !known {
				k.t.Error("it is not known")
			}
		},
		"record and known": func(k *kit) {
			m := arrived("m")
			if known, r := k.known(m); known || r.Err != nil {
				k.t.Errorf("got known %t, %v", known, r.Err)
			}
			k.ok(took(k.record(m, "answer"), "m", false, "answer"))
			k.reopen()
			known, r := k.known(m)
			k.ok(took(r, "m", true, "answer"))
			if !known {
				k.t.Error("it is not known")
			}
			k.ok(took(k.record(m, "another answer"), "m", true, "answer"))
			if got := k.waiting(holdfast.KeptQuery{}); len(got) > 0 {
				k.t.Errorf("%v wait to be fetched", got)
			}
		},
		"pages of kept messages": func(k *kit) {
			var want, wantF []holdfast.ID
			for i := range 25 {
				m := arrived(holdfast.ID(fmt.Sprint("m", i)))
				if i%3 == 0 {
					m.Endpoint = "F"
					wantF = append(wantF, m.ID)
				}
				want = append(want, m.ID)
				k.keep(m)
			}
			for _, limit := range []int{0, 1, 5, 25, 26, 100000} {
				equal(k, "kept", k.waiting(holdfast.KeptQuery{Limit: limit}), want)
				equal(k, "kept of one endpoint", k.waiting(holdfast.KeptQuery{Limit: limit, Endpoint: "F"}), wantF)
			}
			equal(k, "kept of an unknown endpoint", k.waiting(holdfast.KeptQuery{Endpoint: "G"}), nil, cmpopts.EquateEmpty())
		},
		"the senders of an id": func(k *kit) {
			sources := func(id holdfast.ID, want ...string) {
				k.t.Helper()
				got, err := k.Sources(k.ctx(), id)
				if err != nil {
					k.t.Fatal(err)
				}
				equal(k, "senders of "+string(id), got, want, cmpopts.EquateEmpty())
			}
			const id = "0190a7c2-6f5e-7b1a-8c3d-4e5f60718293"
			sources(id)
			first, second, third := arrived(id), arrived(id), arrived(id)
			second.Source, third.Source = "plant-8", "plant-9"
			k.keep(first, second)
			k.record(third, "r")
			sources("0190A7C26F5E7B1A8C3D4E5F60718293", "plant-7", "plant-8") // messages that wait
			k.ok(k.Done(k.ctx(), "plant-7", id, nil))
			sources(id, "plant-8")
			k.ok(k.Done(k.ctx(), "plant-8", id, nil))
			sources(id, "plant-7", "plant-8", "plant-9") // none waits any more
			_, err := k.Sources(k.ctx(), "two words")
			k.fails(err, holdfast.ErrInvalid)
		},
		// Edge case 59.
		"counters": func(k *kit) {
			k.keep(arrived("1"), arrived("2"))
			k.keep(arrived("1"))
			conflict := arrived("1")
			conflict.Payload = []byte(`other`)
			k.keep(conflict)
			k.record(arrived("3"), "r")
			k.known(arrived("3"))
			k.known(arrived("4"))
			k.ok(k.Done(k.ctx(), "plant-7", "1", nil))
			got := k.Counts()
			if got.Kept != 1 || got.Received != 5 || got.Duplicates != 2 {
				k.t.Errorf("got %+v, want 1 kept, 5 received, 2 duplicates", got)
			}
		},
		// OI-10; outbox case 44.
		"ids that may have been forgotten are refused": tooOld,
		// OI-10.
		"ids are remembered for as long as a sender tries": func(k *kit) {
			long, short := arrived("long"), arrived("short")
			long.Attempt.RetryFor = 2 * week
			k.keep(long, short)
			k.record(arrived("recorded"), "r")
			k.ok(k.Done(k.ctx(), "plant-7", "long", []byte("r")))
			k.ok(k.Done(k.ctx(), "plant-7", "short", []byte("r")))
			k.keep(arrived("waits"), arrived("newest"))
			k.pass(week - time.Hour)
			if n := k.sweepInbox(); n != 0 {
				k.t.Errorf("%d ids forgotten too early", n)
			}
			k.pass(2 * time.Hour)
			if n := k.sweepInbox(); n != 2 {
				k.t.Errorf("%d ids forgotten, want 2", n)
			}
			k.pass(week)
			if n := k.sweepInbox(); n != 1 {
				k.t.Errorf("%d ids forgotten, want 1", n)
			}
			equal(k, "kept", k.waiting(holdfast.KeptQuery{}), []holdfast.ID{"waits", "newest"})
			// A message that waited is remembered for as long after it was done.
			k.ok(k.Done(k.ctx(), "plant-7", "waits", []byte("r")))
			k.sweepInbox()
			k.pass(week - time.Hour)
			k.sweepInbox()
			k.ok(took(k.keep(arrived("waits"))[0], "waits", true, "r"))
		},
		"an inbox of many is swept in pages": func(k *kit) {
			const n = 600
			ms := make([]holdfast.Message, n)
			for i := range ms {
				ms[i] = arrived(holdfast.ID(fmt.Sprint("m", i)))
			}
			done := make([]holdfast.Processed, n)
			for i := range ms {
				done[i].Message = ms[i]
			}
			if _, err := k.Record(k.ctx(), week, done...); err != nil {
				k.t.Fatal(err)
			}
			k.keep(arrived("newest"))
			k.pass(week + time.Hour)
			if got := k.sweepInbox(); got != n {
				k.t.Errorf("%d ids forgotten, want %d", got, n)
			}
		},
	})
}

func keptLife(k *kit) {
	m := arrived("m")
	m.Kind, m.CorrelationID, m.Headers, m.Payload = holdfast.Command, "c", map[string]string{"h": "v"}, []byte{0, 255, 10}
	k.ok(took(k.keep(m)[0], "m", false, ""))
	k.ok(took(k.keep(m)[0], "m", true, ""))
	k.reopen()
	p, err := k.Kept(k.ctx(), holdfast.KeptQuery{})
	if err != nil || len(p.Messages) != 1 {
		k.t.Fatalf("got %+v, %v", p, err)
	}
	want := m
	want.Attempt = holdfast.Attempt{}
	equal(k, "kept message", p.Messages[0].Message, want)
	if p.Messages[0].Received.IsZero() {
		k.t.Error("nothing says when it was received")
	}
	k.fails(k.Done(k.ctx(), "plant-7", "unknown", nil), holdfast.ErrNotFound)
	k.fails(k.Done(k.ctx(), "plant-8", "m", nil), holdfast.ErrNotFound)
	k.fails(k.Done(k.ctx(), "plant-7", "two words", nil), holdfast.ErrInvalid)
	k.ok(k.Done(k.ctx(), "plant-7", "m", []byte("answer")))
	k.ok(k.Done(k.ctx(), "plant-7", "m", []byte("answer"))) // the first reply may have been lost
	k.fails(k.Done(k.ctx(), "plant-7", "m", []byte("another")), holdfast.ErrState)
	equal(k, "kept", k.waiting(holdfast.KeptQuery{}), nil, cmpopts.EquateEmpty())
	k.ok(took(k.keep(m)[0], "m", true, "answer"))
	k.reopen()
	k.ok(took(k.keep(m)[0], "m", true, "answer"))
	k.ok(k.Done(k.ctx(), "plant-7", "m", []byte("answer")))
}

func tooOld(k *kit) {
	k.keep(arrived("known"))
	for name, c := range map[string]struct {
		attempt holdfast.Attempt
		refused bool
	}{
		"new":                        {holdfast.Attempt{Cycle: 1, RetryFor: -1}, false},
		"young, says nothing":        {holdfast.Attempt{Cycle: 1, FirstAgo: week - time.Hour, RetryFor: -1}, false},
		"old, says nothing":          {holdfast.Attempt{Cycle: 1, FirstAgo: week + time.Hour, RetryFor: -1}, true},
		"old, said how long":         {holdfast.Attempt{Cycle: 1, FirstAgo: week + time.Hour, RetryFor: week}, false},
		"older than any memory":      {holdfast.Attempt{Cycle: 1, FirstAgo: 3 * 365 * 24 * time.Hour, RetryFor: week}, true},
		"young, a later cycle":       {holdfast.Attempt{Cycle: 2, FirstAgo: week - time.Hour, RetryFor: time.Hour}, false},
		"old, a later cycle":         {holdfast.Attempt{Cycle: 2, FirstAgo: week + time.Hour, RetryFor: time.Hour}, true},
		"old, a later cycle, forced": {holdfast.Attempt{Cycle: 2, FirstAgo: week + time.Hour, RetryFor: time.Hour, Forced: true}, false},
	} {
		m := arrived(holdfast.NewID())
		m.Attempt = c.attempt
		known, r := k.known(m)
		if known != c.refused || errors.Is(r.Err, holdfast.ErrTooOld) != c.refused {
			k.t.Errorf("%s: known: got %t, %v", name, known, r.Err)
		}
		if r := k.keep(m)[0]; errors.Is(r.Err, holdfast.ErrTooOld) != c.refused || r.Err != nil && !c.refused {
			k.t.Errorf("%s: keep: got %v", name, r.Err)
		}
		if c.refused { // the effect has happened, so it is recorded all the same
			k.ok(took(k.record(m, "r"), m.ID, false, "r"))
		}
		again := arrived("known") // a known message is a duplicate, however old
		again.Attempt = c.attempt
		k.ok(took(k.keep(again)[0], "known", true, ""))
	}
}
