package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
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

// What a follower writes shares the transaction of a message, if one comes soon, and has one of its
// own otherwise.
func TestAFollowerWritesAlongWithOthers(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := open(t, filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{})
		defer shut(t, db)
		ctx, stop := context.WithCancel(t.Context())
		p, ended := &numbering{db: db}, make(chan error, 1)
		go func() { ended <- p.run(ctx) }()
		time.Sleep(100 * time.Millisecond)
		unread := func() time.Time {
			t.Helper()
			all, err := db.Followers(ctx)
			if err != nil || len(all) != 1 {
				t.Fatalf("%d followers, %v", len(all), err)
			}
			return all[0].Unread
		}
		enqueue(t, db, message("a"))
		time.Sleep(time.Millisecond)
		first := unread()
		if first.IsZero() {
			t.Error("its transaction did not wait for another message")
		}
		enqueue(t, db, message("b"))
		if !unread().After(first) {
			t.Error("it was not in the transaction of the other message")
		}
		time.Sleep(25 * time.Millisecond) // the next page is read
		if unread().IsZero() {
			t.Error("its second transaction did not wait")
		}
		if time.Sleep(20 * time.Millisecond); !unread().IsZero() {
			t.Error("it waits for ever")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Who sees a follower in the list may rely on it: what is appended from then on is kept for it, also while the
// store itself has not yet answered the one who registers it.
func TestAFollowerThatIsListedMissesNothing(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "a.db"), sqlite.Options{})
	defer shut(t, db)
	for i := range 100 {
		ctx, stop := context.WithCancel(t.Context())
		read, ended := make(chan struct{}, 1), make(chan error, 1)
		go func() {
			ended <- db.Project(ctx, holdfast.Follower{Name: "f"}, func(context.Context, []holdfast.Entry) ([]holdfast.Row, error) {
				read <- struct{}{}
				return nil, nil
			})
		}()
		for {
			if list, err := db.Followers(t.Context()); err != nil {
				t.Fatal(err)
			} else if len(list) == 1 {
				break
			}
		}
		if err := db.Append(t.Context(), holdfast.Entry{Kind: holdfast.Called, Code: "test", Subject: "s"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-read:
		case <-time.After(5 * time.Second):
			t.Fatalf("round %d: the entry is lost", i)
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err := db.Forget(t.Context(), "f"); err != nil {
			t.Fatal(err)
		}
	}
}
