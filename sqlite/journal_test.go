package sqlite_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// A table of the caller's, on one connection alone, that makes another
// sqlite_sequence: a new follower still begins at the journal's end.
func TestFollowerBesideATemporaryTable(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		h.pool = 1
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		if _, err := a.handle.ExecContext(t.Context(), "CREATE TEMP TABLE mine (n INTEGER PRIMARY KEY AUTOINCREMENT)"); err != nil {
			t.Fatal(err)
		}
		follow := func(name string, seen func(holdfast.Entry)) chan error {
			ended := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			t.Cleanup(cancel)
			go func() {
				ended <- a.Project(ctx, holdfast.Follower{Name: name}, func(_ context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
					for i := range page {
						seen(page[i])
					}
					return nil, nil
				})
			}()
			return ended
		}
		if err := <-follow("first", func(holdfast.Entry) {}); err != nil {
			t.Error(err)
		}
		enqueue(t, a.DB, message("old"))
		if err := <-follow("second", func(e holdfast.Entry) { t.Errorf("a new follower was told of %s", e.ID) }); err != nil {
			t.Error(err)
		}
	})
}
