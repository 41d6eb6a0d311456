package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

// bundles tests what a parent with its messages needs of a store.
func bundles(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"each message is handed out with the payload of the bundle": bundledPayload,
		"a name is kind, source and id":                             bundleNames,
		"the payload counts where an id is sent again":              bundledAgain,
		"it is all or nothing":                                      bundleIsWhole,
		"the payload stays until the last message and row is gone":  bundleStays,
		"what no bundle takes is refused":                           bundleInvalid,
	})
}

// bundleOf is one of n messages, each in a lane of its own.
func bundleOf(id holdfast.ID, payload []byte, n int) holdfast.Bundle {
	in := note(id, "plant-1", lanesOf(n)...)
	in.Payload = payload
	return in.bundle()
}

func lanesOf(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("c%03d", i)
	}
	return list
}

// bundle writes one and fails unless it is new.
func (k *kit) bundle(b holdfast.Bundle) {
	k.t.Helper()
	results, err := k.Bundle(k.ctx(), b)
	if err != nil || results[0].Err != nil || results[0].Receipt.Duplicate {
		k.t.Fatalf("got %+v, %v", results, err)
	}
}

func (k *kit) bundleResult(b holdfast.Bundle) holdfast.Result {
	k.t.Helper()
	results, err := k.Bundle(k.ctx(), b)
	if err != nil {
		k.t.Fatal(err)
	}
	return results[0]
}

func bundledPayload(k *kit) {
	payload := bytes.Repeat([]byte("\x00payload\xff"), 10_000)
	k.bundle(bundleOf("b", payload, 12))
	k.put(holdfast.Message{ID: "apart", Destination: "apart", Payload: []byte("its own")})
	for _, from := range []string{"memory", "disk"} {
		for _, c := range lanesOf(12) {
			m := k.oneOf(c).Message
			if !bytes.Equal(m.Payload, payload) {
				k.t.Errorf("from %s: %s is handed out with %d bytes, want %d", from, m.ID, len(m.Payload), len(payload))
			}
			if got := k.get(m.ID).Message.Payload; !bytes.Equal(got, payload) {
				k.t.Errorf("from %s: %s is shown with %d bytes", from, m.ID, len(got))
			}
		}
		if got := k.get("apart").Message.Payload; string(got) != "its own" {
			k.t.Errorf("from %s: beside a bundle: %q", from, got)
		}
		k.reopen()
	}
}

func bundleNames(k *kit) {
	const id = "0190a7c2-6f5e-7b1a-8c3d-4e5f60718293"
	b := bundleOf(id, []byte("x"), 1)
	k.bundle(b)
	same := b
	same.ID = "0190A7C2-6F5E-7B1A-8C3D-4E5F60718293"
	if r := k.bundleResult(same); r.Err != nil || !r.Receipt.Duplicate || r.Receipt.ID != id {
		k.t.Errorf("the same id in capitals: %+v", r)
	}
	for what, change := range map[string]func(b *holdfast.Bundle){
		"kind":   func(b *holdfast.Bundle) { b.Kind = "another" },
		"source": func(b *holdfast.Bundle) { b.Source = "plant-2" },
		"id":     func(b *holdfast.Bundle) { b.ID = "another" },
	} {
		other := bundleOf(holdfast.ID("m-"+what), []byte("y"), 1)
		other.Kind, other.Source, other.ID, other.Hash = b.Kind, b.Source, b.ID, [32]byte{1}
		change(&other)
		if r := k.bundleResult(other); r.Err != nil || r.Receipt.Duplicate {
			k.t.Errorf("another %s: %+v, want a new one", what, r)
		}
	}
	other := b
	other.Hash[0]++
	if r := k.bundleResult(other); !errors.Is(r.Err, holdfast.ErrConflict) {
		k.t.Errorf("another hash: %+v, want a conflict", r)
	}
}

func bundledAgain(k *kit) {
	k.bundle(bundleOf("b", []byte("x"), 2))
	r := k.get(copyOf("b", "c001"))
	again := r.Message
	got, err := k.Enqueue(k.ctx(), again)
	if err != nil || !got[0].Duplicate {
		k.t.Errorf("a bundled message sent by itself: %+v, %v, want a duplicate", got, err)
	}
	again.Payload = []byte("y")
	if _, err := k.Enqueue(k.ctx(), again); !errors.Is(err, holdfast.ErrConflict) {
		k.t.Errorf("with another payload: %v, want a conflict", err)
	}
}

func bundleIsWhole(k *kit) {
	b := bundleOf("b", []byte("x"), 3)
	k.put(holdfast.Message{ID: copyOf("b", "c002")}) // the last one's
	beside := bundleOf("beside", []byte("x"), 1)
	results, err := k.Bundle(k.ctx(), b, beside)
	if err != nil || !errors.Is(results[0].Err, holdfast.ErrConflict) || results[1].Err != nil {
		k.t.Fatalf("got %+v, %v", results, err)
	}
	k.unknown("b")
	if got := k.claimOf(notify.LanePrefix+"c001", 1); len(got) != 0 {
		k.t.Errorf("a message of what was refused is handed out: %+v", got)
	}
	if got := len(k.all(holdfast.Query{})); got != 2 {
		k.t.Errorf("%d messages, want 2", got)
	}
	k.reopen()
	if got := len(k.all(holdfast.Query{})); got != 2 {
		k.t.Errorf("%d messages after a restart, want 2", got)
	}
}

func bundleStays(k *kit) {
	k.bundle(bundleOf("b", []byte(`{"list":"l","subject":"s","body":"the text"}`), 2))
	k.wins(k.oneOf("c000"), delivered())
	k.put(holdfast.Message{ID: "newest"})
	k.pass(24 * time.Hour)
	k.purge(holdfast.Retention{Delivered: time.Hour})
	k.reopen()
	if r := k.bundleResult(bundleOf("b", []byte(`{"list":"l","subject":"s","body":"the text"}`), 2)); !r.Receipt.Duplicate || r.Receipt.State != holdfast.Delivered {
		k.t.Errorf("sent again, its first message purged: %+v", r)
	}
	if c := k.oneOf("c001"); len(c.Message.Payload) == 0 {
		k.t.Error("the other message has lost its payload")
	} else {
		k.wins(c, delivered())
	}
	k.pass(24 * time.Hour)
	k.purge(holdfast.Retention{Delivered: time.Hour})
	if got := k.shown("b")[0].Notification.Body; got != "the text" {
		k.t.Errorf("with all messages purged the text is %q", got)
	}
	if n := k.forget(time.Hour); n != 2 {
		k.t.Errorf("%d copies went, want 2", n)
	}
	k.bundle(bundleOf("b", []byte("new"), 2))
}

func bundleInvalid(k *kit) {
	for what, spoil := range map[string]func(b *holdfast.Bundle){
		"no kind":                             func(b *holdfast.Bundle) { b.Kind = "" },
		"a source that is no name":            func(b *holdfast.Bundle) { b.Source = "two words" },
		"no id":                               func(b *holdfast.Bundle) { b.ID = "" },
		"no message":                          func(b *holdfast.Bundle) { b.Messages, b.Rows = nil, nil },
		"a message with a payload":            func(b *holdfast.Bundle) { b.Messages[0].Payload = []byte("x") },
		"two messages of one id":              func(b *holdfast.Bundle) { b.Messages[1].ID = b.Messages[0].ID },
		"fewer rows than messages":            func(b *holdfast.Bundle) { b.Rows = b.Rows[:1] },
		"a row that stands beside no message": func(b *holdfast.Bundle) { b.Rows[1] = &rows.Token{Name: "t"} },
	} {
		b := bundleOf("b", []byte("x"), 2)
		spoil(&b)
		if r := k.bundleResult(b); !errors.Is(r.Err, holdfast.ErrInvalid) {
			k.t.Errorf("%s: %+v, want ErrInvalid", what, r)
		}
	}
	if got := len(k.all(holdfast.Query{})); got != 0 {
		k.t.Errorf("%d messages, want none", got)
	}
}
