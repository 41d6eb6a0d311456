package storetest

import (
	"errors"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// shared tests a store that several processes may have open at once, [holdfast.Shared]. A store for
// one process need not implement it.
func shared(t *testing.T, m Maker) {
	t.Helper()
	if m.Beside == nil {
		t.Skip("one process has this store at a time")
	}
	m.meet(t, map[string]func(k *kit){
		"one process has all": func(k *kit) {
			s := k.shared()
			if share := s.Share("a", 20); share != 20 || !s.Alone() {
				k.t.Errorf("a share of %d of 20, alone %t", share, s.Alone())
			}
			k.put(holdfast.Message{ID: "1"})
			c := k.one("1")
			if !s.Holds(c) {
				k.t.Error("a fresh claim is not held")
			}
			k.wins(c, holdfast.Settlement{State: holdfast.Delivered})
			if got, err := s.Standing(k.ctx(), "1"); got.State != holdfast.Delivered || err != nil {
				k.t.Errorf("it stands as %+v, %v", got, err)
			}
			_, err := s.Standing(k.ctx(), "2")
			k.fails(err, holdfast.ErrNotFound)
		},
		"what one has claimed no other gets": func(k *kit) {
			other := k.beside()
			k.put(holdfast.Message{ID: "first"})
			k.deliversAt(other) // from now on the other gets what nobody has
			k.put(holdfast.Message{ID: "1"})
			c := k.soon(k.Full)
			if b, err := other.Claim(k.ctx(), map[string]int{"a": 1}); err != nil || len(b.Claims) > 0 {
				k.t.Errorf("claimed again: %v, %v", b.Claims, err)
			}
			if won, err := other.Settle(k.ctx(), holdfast.Settlement{Seq: c.Seq, Token: c.Token + 1, State: holdfast.Discarded}); err != nil || won[0] {
				k.t.Errorf("another's settlement took effect: %v, %v", won, err)
			}
			k.wins(c, holdfast.Settlement{State: holdfast.Delivered})
			if got, err := other.(holdfast.Shared).Standing(k.ctx(), "1"); got.State != holdfast.Delivered || err != nil {
				k.t.Errorf("to the other it stands as %+v, %v", got, err)
			}
		},
		"what one accepts another delivers": func(k *kit) {
			other := k.beside()
			k.put(holdfast.Message{ID: "1"})
			k.deliversAt(other)
			k.is("1", holdfast.Delivered)
			waittest.Until(k.t, "the one hears of it", func() bool { return k.Counts().Pending == 0 })
		},
		"they share what a destination bears": func(k *kit) {
			s, other := k.shared(), k.beside().(holdfast.Shared)
			k.put(holdfast.Message{ID: "1"}) // a destination is known by its messages
			k.wins(k.one("1"), holdfast.Settlement{State: holdfast.Delivered})
			waittest.Until(k.t, "one has heard of the other", func() bool {
				_, err := other.Claim(k.ctx(), map[string]int{"a": 1})
				_, err2 := s.Claim(k.ctx(), map[string]int{"a": 1})
				if err := errors.Join(err, err2); err != nil {
					k.t.Fatal(err)
				}
				return !s.Alone() && !other.Alone() && s.Share("a", 20)+other.Share("a", 20) == 20
			})
		},
	})
}

// shared returns the store as a holdfast.Shared.
func (k *kit) shared() holdfast.Shared {
	k.t.Helper()
	s, ok := k.Full.(holdfast.Shared)
	if !ok {
		k.t.Fatalf("%T can be opened twice at once, and is no holdfast.Shared", k.Full)
	}
	return s
}

// soon returns the one due message of a, once s gets it: a process that has just come, or has heard
// of another, gets nothing for a while.
func (k *kit) soon(s Full) (c holdfast.Claim) {
	k.t.Helper()
	waittest.Until(k.t, "it is claimed", func() bool {
		b, err := s.Claim(k.ctx(), map[string]int{"a": 1})
		k.ok(err)
		if len(b.Claims) == 1 {
			c = b.Claims[0]
		}
		return len(b.Claims) == 1
	})
	return c
}

// deliversAt makes another process claim the one due message of a, and deliver it.
func (k *kit) deliversAt(other Full) {
	k.t.Helper()
	c := k.soon(other)
	if won, err := other.Settle(k.ctx(), holdfast.Settlement{Seq: c.Seq, Token: c.Token, State: holdfast.Delivered}); err != nil || !won[0] {
		k.t.Errorf("settled: %v, %v", won, err)
	}
}

// beside opens the store a second time, until the case ends.
func (k *kit) beside() Full {
	k.t.Helper()
	other := k.m.Beside(k.t, k.Full)
	k.t.Cleanup(func() {
		if err := other.Close(); err != nil {
			k.t.Errorf("close: %v", err)
		}
	})
	return other
}
