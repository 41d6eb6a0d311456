package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// wantingChild dispatches in a database that another process has, until it is killed.
func wantingChild(driver, path string) {
	h := handles()[driver]
	handle, err := sql.Open(h.driver, "file:"+path+h.options)
	must(err)
	handle.SetMaxOpenConns(h.pool)
	db, err := sqlite.Attach(context.Background(), handle, sqlite.Options{Source: "shop"})
	must(err)
	d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {
		Deliverer: holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			return holdfast.Receipt{ID: m.ID}, nil
		}),
	}}}
	must(d.Run(context.Background()))
}

// F1-32: a process that is killed wants nothing any more, and has nothing: while
// it waited for the file the owner keeps it, and after it had got it the one
// before gets it back.
func TestKillWhoWantsTheFile(t *testing.T) {
	t.Parallel()
	for name, h := range handles() {
		if h.pool == 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := h.attach(t, filepath.Join(t.TempDir(), "shop.db"), sqlite.Options{Source: "shop"})
			defer a.shut(t)
			wanted := func() bool {
				is, err := sqlite.IsWanted(a.path)
				if err != nil {
					t.Error(err)
				}
				return is
			}
			enqueue(t, a.DB, message("1"), message("2"))
			held := claims(t, a, 1) // it cannot go yet
			c, _ := start(t, "wanting", name, a.path)
			waittest.Until(t, "the child wants the file", wanted)
			kill(t, c)
			waittest.Until(t, "the child wants it no more", func() bool { return !wanted() })
			if won, err := a.Settle(t.Context(), settlement(held[0], holdfast.Delivered)); err != nil || !won[0] {
				t.Errorf("settle: %v, %v", won, err)
			}
			time.Sleep(1500 * time.Millisecond)
			if got := a.Owner(); got != "" {
				t.Errorf("the owner takes %q for it", got)
			}

			c, _ = start(t, "wanting", name, a.path)
			waittest.Until(t, "the child has delivered", func() bool { return stateOf(t, a.DB, "2") == "delivered" })
			if a.Owner() == "" {
				t.Error("the process without a dispatcher takes itself for the owner")
			}
			kill(t, c)
			waittest.Until(t, "the file is back", func() bool { return a.Owner() == "" })
			enqueue(t, a.DB, message("3"))
			if c := claims(t, a, 10); len(c) != 1 || c[0].Message.ID != "3" || a.Careful() == 0 {
				t.Errorf("claimed %v, careful for %d settlements; want 3, and that the death is noticed", idsOf(c), a.Careful())
			} else if _, err := a.Settle(t.Context(), settlement(c[0], holdfast.Delivered)); err != nil {
				t.Error(err)
			}
			audit(t, a.DB)
		})
	}
}
