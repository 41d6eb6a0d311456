package sqlite_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func change(t testing.TB, a *app, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := a.handle.ExecContext(context.Background(), text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Who takes over counts the inbox: what the owner before has forgotten, it
// told nobody.
func TestInboxIsCountedByWhoTakesOver(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		in := &holdfast.Inbox[*sqlite.Tx]{Store: other.DB, Retention: time.Second}
		for _, id := range []holdfast.ID{"1", "2", "3"} {
			if _, err := in.Process(t.Context(), holdfast.Message{ID: id, Source: "web"}, nothing); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(3 * time.Second)
		if n, _, err := owner.SweepInbox(t.Context(), time.Second); n != 2 || err != nil {
			t.Errorf("forgot %d ids (%v), want all but the last", n, err)
		}
		owner.shut(t)
		time.Sleep(2 * time.Second)
		if _, err := in.Process(t.Context(), holdfast.Message{ID: "4", Source: "web"}, nothing); err != nil {
			t.Error(err)
		}
		if n := other.Counts().Inbox; n != 2 {
			t.Errorf("an inbox of %d, want 2", n)
		}
		audit(t, other.DB)
	})
}

// A take-over that fails halfway leaves no owner without the lock, and is
// tried again.
func TestTakeOverThatFailsHalfway(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		enqueue(t, owner.DB, message("m"))
		owner.shut(t)
		change(t, other, "ALTER TABLE hf_follower RENAME COLUMN cursor TO away")
		time.Sleep(3 * time.Second)
		if b, _ := other.Claim(t.Context(), map[string]int{"a": 10}); len(b.Claims) > 0 {
			t.Errorf("claimed %v after a take-over that failed", idsOf(b.Claims))
		}
		change(t, other, "ALTER TABLE hf_follower RENAME COLUMN away TO cursor")
		time.Sleep(3 * time.Second)
		if _, err := sqlite.Open(t.Context(), other.path, sqlite.Options{}); !errors.Is(err, sqlite.ErrOwned) {
			t.Errorf("open: got %v, want ErrOwned", err)
		}
		if c := claims(t, other, 10); len(c) != 1 {
			t.Errorf("claimed %v, want m", idsOf(c))
		}
	})
}
