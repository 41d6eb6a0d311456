package sqlite_test

import (
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// VACUUM may renumber rows that have no key of their own; ours all have one,
// and what memory knows of them stays right.
func TestVacuumChangesNothing(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		enqueue(t, a.DB, message("1"), message("2"), message("3"))
		claimed := claim(t, a.DB, 1)
		if _, err := a.handle.ExecContext(t.Context(), "VACUUM"); err != nil {
			t.Fatal(err)
		}
		rest := claim(t, a.DB, 10)
		if len(claimed) != 1 || len(rest) != 2 {
			t.Fatalf("claimed %d and %d, want 1 and 2", len(claimed), len(rest))
		}
		for i, c := range append(claimed, rest...) {
			if want := string(rune('1' + i)); string(c.Message.ID) != want {
				t.Errorf("claim %d is %s, want %s", i, c.Message.ID, want)
			}
			won, err := a.Settle(t.Context(), holdfast.Settlement{Seq: c.Seq, Token: c.Token, State: holdfast.Delivered, Outcome: holdfast.Succeeded})
			if err != nil || !won[0] {
				t.Errorf("settle %s: %v, %v", c.Message.ID, won, err)
			}
		}
		audit(t, a.DB)
	})
}
