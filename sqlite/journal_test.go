package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func lines(events []holdfast.Entry) (list []string) {
	for _, e := range events {
		list = append(list, fmt.Sprint(e.ID, " ", e.Destination, " ", e.Kind, " ", e.State))
	}
	return list
}

// note is a follower that writes what it reads down in its transaction.
func note(ctx context.Context, tx *sqlite.Tx, events []holdfast.Entry) error {
	for _, l := range lines(events) {
		if _, err := tx.ExecContext(ctx, "INSERT INTO notes VALUES (?)", l); err != nil {
			return err
		}
	}
	return nil
}

func noted(t testing.TB, db *sqlite.DB) (list []string) {
	t.Helper()
	rows, err := db.SQL(t.Context(), "SELECT line FROM notes ORDER BY rowid")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		list = append(list, r[0].(string))
	}
	return list
}

func makeNotes(t testing.TB, db *sqlite.DB) {
	t.Helper()
	if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE notes (line TEXT)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// follow runs a follower until the returned function stops it.
func follow(t testing.TB, db *sqlite.DB, name string, fn func(context.Context, *sqlite.Tx, []holdfast.Entry) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- db.Follow(ctx, name, fn) }()
	synctest.Wait()
	return func() error {
		synctest.Wait()
		cancel()
		return <-ended
	}
}

// Each change takes effect exactly once, over restarts, errors and panics of
// the follower, and a follower that fails stops only itself.
func TestFollowerSeesEachChangeOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "holdfast.db")
		db := open(t, path, virtual())
		makeNotes(t, db)
		enqueue(t, db, message("early")) // before the follower: not its business
		stop := follow(t, db, "notes", note)
		enqueue(t, db, message("m"), message("n"))
		c := claim(t, db, 3)
		if _, err := db.Settle(t.Context(), settlement(c[0], holdfast.Delivered), settlement(c[1], holdfast.Parked)); err != nil {
			t.Fatal(err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		want := []string{"m a enqueued pending", "n a enqueued pending", "m a attempted parked", "early a attempted delivered"}
		if d := cmp.Diff(noted(t, db), want); d != "" {
			t.Errorf("(-got +want):\n%s", d)
		}

		broken := errors.New("broken")
		fails := func(ctx context.Context, tx *sqlite.Tx, events []holdfast.Entry) error {
			if err := note(ctx, tx, events); err != nil {
				return err
			}
			return broken
		}
		panics := func(ctx context.Context, tx *sqlite.Tx, events []holdfast.Entry) error {
			_ = note(ctx, tx, events)
			panic("torn")
		}
		stop = follow(t, db, "notes", fails)
		stopPanic := follow(t, db, "panics", panics)
		if _, err := db.Requeue(t.Context(), "m", holdfast.Requeue{}); err != nil {
			t.Fatal(err)
		}
		if err := stop(); !errors.Is(err, broken) {
			t.Errorf("got %v, want the follower's error", err)
		}
		if err := stopPanic(); err == nil || !strings.Contains(err.Error(), "torn") {
			t.Errorf("got %v, want the panic", err)
		}
		if err := db.Unfollow(t.Context(), "panics"); err != nil {
			t.Error(err)
		}
		shut(t, db)

		db = open(t, path, virtual())
		defer shut(t, db)
		enqueue(t, db, message("o")) // written before the follower is back: kept for it
		if err := follow(t, db, "notes", note)(); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(noted(t, db), append(want, "m a requeued pending", "o a enqueued pending")); d != "" {
			t.Errorf("(-got +want):\n%s", d)
		}
		audit(t, db)
	})
}

// A follower that registers while others write misses nothing that is
// committed after it, and reads in pages.
func TestFollowerRegistersWhileWritesRun(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := fresh(t, virtual())
		defer shut(t, db)
		makeNotes(t, db)
		const messages = 600
		ids := make(chan holdfast.ID, messages)
		done := make(chan struct{})
		started := make(chan struct{})
		go func() {
			defer close(done)
			for i := range messages {
				if i == 20 {
					close(started)
				}
				id := holdfast.ID(fmt.Sprint("m", i))
				if _, err := db.Enqueue(t.Context(), message(id)); err != nil {
					t.Error(err)
				}
				ids <- id
			}
			close(ids)
		}()
		<-started
		stop := follow(t, db, "notes", note)
		<-done
		if err := stop(); err != nil {
			t.Error(err)
		}
		var all, want []string
		for id := range ids {
			all = append(all, fmt.Sprint(id, " a enqueued pending"))
		}
		got := noted(t, db)
		if len(got) > 0 { // from some message on, all of them
			for i := range all {
				if all[i] == got[0] {
					want = all[i:]
				}
			}
		}
		if d := cmp.Diff(got, want); d != "" {
			t.Errorf("(-got +want):\n%s", d)
		}
	})
}

func TestPurgeWaitsForFollowers(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := fresh(t, virtual())
		defer shut(t, db)
		makeNotes(t, db)
		if err := follow(t, db, "notes", note)(); err != nil {
			t.Error(err)
		}
		if err := follow(t, db, "lost", note)(); err != nil {
			t.Error(err)
		}
		enqueue(t, db, message("m"), message("newest"))
		if _, err := db.Settle(t.Context(), settlement(claim(t, db, 1)[0], holdfast.Delivered)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		purged := func() int {
			n, _, err := db.Purge(t.Context(), holdfast.Retention{Delivered: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := purged(); n != 0 {
			t.Errorf("%d purged before anybody read of it", n)
		}
		if err := follow(t, db, "notes", note)(); err != nil {
			t.Error(err)
		}
		if n := purged(); n != 0 {
			t.Errorf("%d purged before the other follower read of it", n)
		}
		if err := db.Unfollow(t.Context(), "lost"); err != nil {
			t.Error(err)
		}
		if n := purged(); n != 1 {
			t.Errorf("%d purged, want 1", n)
		}
		if got := len(noted(t, db)); got != 3 {
			t.Errorf("%d events noted, want 3", got)
		}
		audit(t, db)
	})
}

// Who is unfollowed while it runs ends, and does not begin at the first event
// again.
func TestUnfollowEndsTheFollower(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := fresh(t, virtual())
		defer shut(t, db)
		makeNotes(t, db)
		stop := follow(t, db, "notes", note)
		enqueue(t, db, message("m"))
		synctest.Wait()
		if err := db.Unfollow(t.Context(), "notes"); err != nil {
			t.Error(err)
		}
		enqueue(t, db, message("n"))
		time.Sleep(time.Minute)
		if err := stop(); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		if got := noted(t, db); len(got) != 1 {
			t.Errorf("noted %q", got)
		}
		// Nothing follows: deliveries are not journaled any more.
		rows, err := db.SQL(t.Context(), "SELECT count(*) FROM hf_event")
		if err != nil || rows[0][0] != int64(1) {
			t.Errorf("%v events, %v", rows, err)
		}
	})
}

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
				ended <- a.Follow(ctx, name, func(_ context.Context, _ *sqlite.Tx, events []holdfast.Entry) error {
					for _, e := range events {
						seen(e)
					}
					return nil
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
