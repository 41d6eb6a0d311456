package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// shop attaches the store beside a table of the caller's.
func (h handle) shop(t testing.TB, o sqlite.Options) *app {
	t.Helper()
	a := h.attach(t, filepath.Join(t.TempDir(), "shop.db"), o)
	if _, err := a.handle.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *app) shut(t testing.TB) {
	t.Helper()
	if err := a.DB.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if n := a.handle.Stats().InUse; n != 0 {
		t.Errorf("%d connections of the caller's pool are still in use", n)
	}
	if err := a.handle.Close(); err != nil {
		t.Errorf("close the handle: %v", err)
	}
}

func (a *app) begin(t testing.TB) *sql.Tx {
	t.Helper()
	tx, err := a.handle.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func (a *app) orders(t testing.TB) (n int) {
	t.Helper()
	if err := a.handle.QueryRowContext(context.Background(), "SELECT count(*) FROM orders").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func order(t testing.TB, tx *sql.Tx, id int) {
	t.Helper()
	if _, err := tx.ExecContext(context.Background(), "INSERT INTO orders VALUES (?)", id); err != nil {
		t.Fatal(err)
	}
}

// OI-01: in the caller's own transaction both exist, or neither does.
func TestMessageCommitsWithTheCallersRows(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		for i, c := range []struct {
			id     holdfast.ID
			commit bool
			want   string
		}{{"kept", true, "pending"}, {"dropped", false, "nothing"}, {"kept-too", true, "pending"}} {
			tx := a.begin(t)
			order(t, tx, i)
			receipts, err := a.In(tx).Enqueue(t.Context(), message(c.id), message(c.id+"2"), message(c.id))
			if err != nil || receipts[0].Duplicate || !receipts[2].Duplicate {
				t.Errorf("enqueue: %v, %v", receipts, err)
			}
			end := tx.Rollback
			if c.commit {
				end = tx.Commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if got, got2 := stateOf(t, a.DB, c.id), stateOf(t, a.DB, c.id+"2"); got != c.want || got2 != c.want {
				t.Errorf("%s: %s and %s, want %s", c.id, got, got2, c.want)
			}
		}
		if n := a.orders(t); n != 2 {
			t.Errorf("%d orders, want 2", n)
		}
		audit(t, a.DB)
	})
}

// An error of ours takes back what ours did, and the caller's transaction
// goes on: all of the messages of one call, or none.
func TestCallersTransactionSurvivesARefusal(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		enqueue(t, a.DB, message("taken"))
		tx := a.begin(t)
		order(t, tx, 1)
		in := a.In(tx)
		other := message("taken")
		other.Payload = []byte("other")
		if _, err := in.Enqueue(t.Context(), message("1"), other); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
		if _, err := in.Enqueue(t.Context(), message("2"), holdfast.Message{}); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("got %v, want ErrInvalid", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := in.Enqueue(ended, message("3")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
		if _, err := in.Enqueue(t.Context(), message("4")); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[holdfast.ID]string{"1": "nothing", "2": "nothing", "3": "nothing", "4": "pending"} {
			if got := stateOf(t, a.DB, id); got != want {
				t.Errorf("%s is %s, want %s", id, got, want)
			}
		}
		if n := a.orders(t); n != 1 {
			t.Errorf("%d orders", n)
		}
		if _, err := in.Enqueue(t.Context(), message("late")); err == nil {
			t.Error("enqueued in a transaction that is over")
		}
		if got := stateOf(t, a.DB, "late"); got != "nothing" {
			t.Errorf("late is %s", got)
		}
		audit(t, a.DB)
	})
}

// A statement of the caller's that undoes the transaction must not leave the
// next message to commit by itself.
func TestEnqueueAfterTheCallersTransactionIsUndone(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		tx := a.begin(t)
		order(t, tx, 1)
		if _, err := tx.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		if _, err := a.In(tx).Enqueue(t.Context(), message("m")); err == nil {
			t.Error("no error")
		}
		_ = tx.Rollback()
		if got := stateOf(t, a.DB, "m"); got != "nothing" {
			t.Errorf("m is %s", got)
		}
	})
}

// A context that ends a caller's transaction ends it for In too.
func TestCallersContextEndsItsTransaction(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := a.handle.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.In(tx).Enqueue(ctx, message("m")); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := tx.Commit(); err == nil {
			t.Error("committed after its context had ended")
		}
		if got := stateOf(t, a.DB, "m"); got != "nothing" {
			t.Errorf("m is %s", got)
		}
	})
}

// outbox-peers 28: the dispatcher hears of Do at once, and of every other
// commit within 200 ms.
func TestCommitsWakeTheDispatcher(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		racetest.Bubble(t, func(t *testing.T) {
			a := h.shop(t, virtual())
			defer a.shut(t)
			got := make(chan time.Time, 10)
			d := &holdfast.Dispatcher{Store: a.DB, Poll: time.Hour, Routes: map[string]holdfast.Route{"a": {
				Deliverer: holdfast.DelivererFunc(func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
					got <- time.Now()
					return holdfast.Receipt{}, nil
				}),
			}}}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- d.Run(ctx) }()
			synctest.Wait()
			time.Sleep(time.Minute + 42*time.Millisecond)
			for name, c := range map[string]struct {
				commit func() error
				within time.Duration
			}{
				"Do": {func() error {
					return a.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
						_, err := tx.Enqueue(ctx, message("do"))
						return err
					})
				}, 0},
				"Enqueue": {func() error { _, err := a.Enqueue(ctx, message("own")); return err }, 0},
				"In": {func() error {
					tx := a.begin(t)
					if _, err := a.In(tx).Enqueue(ctx, message("in")); err != nil {
						return err
					}
					return tx.Commit()
				}, 200 * time.Millisecond},
			} {
				began := time.Now()
				if err := c.commit(); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if took := (<-got).Sub(began); took > c.within {
					t.Errorf("%s: delivered after %s, want %s", name, took, c.within)
				}
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	})
}

// A handle that would lose commits, or cannot keep any, is refused with the
// way out.
func TestAttachRefusesWhatIsNotDurable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ driver, source, want string }{
		"modernc NORMAL":   {"sqlite", "file:%s?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)", "synchronous is 1"},
		"mattn NORMAL":     {"sqlite3", "file:%s?_journal_mode=WAL&_synchronous=NORMAL", "synchronous is 1"},
		"modernc rollback": {"sqlite", "file:%s", "journal_mode is \"delete\""},
		"mattn rollback":   {"sqlite3", "file:%s", "journal_mode is \"delete\""},
		"modernc memory":   {"sqlite", ":memory:", "in memory"},
		"mattn memory":     {"sqlite3", ":memory:", "in memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handle, err := sql.Open(c.driver, strings.ReplaceAll(c.source, "%s", filepath.Join(t.TempDir(), "app.db")))
			if err != nil {
				t.Fatal(err)
			}
			defer handle.Close()
			if _, err := sqlite.Attach(t.Context(), handle, sqlite.Options{}); !errors.Is(err, sqlite.ErrNotDurable) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			var n int
			if err := handle.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_master").Scan(&n); err != nil || n != 0 {
				t.Errorf("%d tables were made (%v)", n, err)
			}
		})
	}
}

// Each connection of a pool has its own setting: one that was changed later
// is refused when it is met, and nothing is acknowledged on it.
func TestEveryConnectionMustBeDurable(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		h.pool = 1
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		set := func(level string) {
			t.Helper()
			if _, err := a.handle.ExecContext(t.Context(), "PRAGMA synchronous = "+level); err != nil {
				t.Fatal(err)
			}
		}
		set("NORMAL")
		if _, err := a.Enqueue(t.Context(), message("1")); !errors.Is(err, sqlite.ErrNotDurable) {
			t.Errorf("enqueue: got %v, want ErrNotDurable", err)
		}
		tx := a.begin(t)
		if _, err := a.In(tx).Enqueue(t.Context(), message("2")); !errors.Is(err, sqlite.ErrNotDurable) {
			t.Errorf("in: got %v, want ErrNotDurable", err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		set("FULL")
		enqueue(t, a.DB, message("3"))
		for id, want := range map[holdfast.ID]string{"1": "nothing", "2": "nothing", "3": "pending"} {
			if got := stateOf(t, a.DB, id); got != want {
				t.Errorf("%s is %s, want %s", id, got, want)
			}
		}
	})
}

// With a pool of one, the caller's connection is never kept, and waiting for
// it inside the caller's own transaction ends with an error that says why.
func TestPoolOfOne(t *testing.T) {
	t.Parallel()
	for name, h := range handles() {
		if h.pool > 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				o := virtual()
				o.TurnWait = time.Second
				a := h.shop(t, o)
				defer a.shut(t)
				tx := a.begin(t)
				if _, err := a.Enqueue(t.Context(), message("plain")); err == nil || !strings.Contains(err.Error(), "use In") {
					t.Errorf("got %v", err)
				}
				if _, err := a.In(tx).Enqueue(t.Context(), message("in")); err != nil {
					t.Error(err)
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				err := a.Do(t.Context(), func(ctx context.Context, _ *sqlite.Tx) error {
					_, err := a.Get(ctx, "in")
					return err
				})
				if !errors.Is(err, holdfast.ErrNested) {
					t.Errorf("Get inside Do: got %v, want ErrNested", err)
				}
				if got, want := stateOf(t, a.DB, "plain")+stateOf(t, a.DB, "in"), "nothingpending"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		})
	}
}

// A transaction that has read before it writes can find its snapshot too old:
// that error is SQLite's own, nothing of ours happens, and Do never meets it.
func TestStaleSnapshotIsTheCallers(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		if h.pool == 1 {
			t.Skip("one connection cannot be behind itself")
		}
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		tx := a.begin(t)
		var n int
		if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&n); err != nil {
			t.Fatal(err)
		}
		enqueue(t, a.DB, message("other"))
		if _, err := a.In(tx).Enqueue(t.Context(), message("m")); err == nil {
			t.Error("no error")
		}
		_ = tx.Rollback()
		for range 20 {
			done := make(chan error, 1)
			go func() { _, err := a.Enqueue(t.Context(), message("")); done <- err }()
			if err := a.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
				var n int
				if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&n); err != nil {
					return err
				}
				_, err := tx.Enqueue(ctx, message(""))
				return err
			}); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// outbox-peers 16: another connection holds the right to write for seconds;
// whoever comes meanwhile waits and succeeds.
func TestWritersWaitForTheCallersTransaction(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		if h.pool == 1 {
			t.Skip("the pool itself makes them wait")
		}
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		tx := a.begin(t)
		order(t, tx, 1)
		done := make(chan error, 8)
		for range cap(done) {
			go func() { _, err := a.Enqueue(context.Background(), message("")); done <- err }()
		}
		waittest.Until(t, "one of them is at the caller's transaction, and others wait behind it", func() bool { return a.Queued() > 0 })
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// Each driver's errors have the library's meaning, whichever driver it is.
func TestFullDiskOfTheCaller(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		h.pool = 1
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		limit := func(n int) {
			t.Helper()
			var got int
			if err := a.handle.QueryRowContext(t.Context(), fmt.Sprint("PRAGMA max_page_count = ", n)).Scan(&got); err != nil {
				t.Fatal(err)
			}
		}
		limit(1)
		large := message("large")
		large.Payload = make([]byte, 1<<20)
		if _, err := a.Enqueue(t.Context(), large); !errors.Is(err, holdfast.ErrDiskFull) {
			t.Errorf("enqueue: got %v, want ErrDiskFull", err)
		}
		tx := a.begin(t)
		if _, err := a.In(tx).Enqueue(t.Context(), large); !errors.Is(err, holdfast.ErrDiskFull) {
			t.Errorf("in: got %v, want ErrDiskFull", err)
		}
		_ = tx.Rollback()
		if !a.Full() {
			t.Error("the store does not say that it is full")
		}
		limit(100000)
		enqueue(t, a.DB, large)
		audit(t, a.DB)
	})
}

// A process that was away for long learns of a large backlog without reading
// it row by row.
func TestLearnsOfALargeBacklog(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		enqueue(t, owner.DB, message("first"))
		ms := make([]holdfast.Message, 10500)
		for i := range ms {
			ms[i] = message("")
		}
		enqueue(t, other.DB, ms...)
		time.Sleep(lookTwice)
		if n := owner.Counts().Pending; n != 10501 {
			t.Errorf("the owner counts %d pending", n)
		}
		if c := claims(t, owner, 20); len(c) != 20 {
			t.Errorf("claimed %d", len(c))
		}
	})
}

// F1-41: while another connection holds the right to write, the context of each
// caller is kept, and who comes after it waits for no longer either.
func TestTheContextIsKeptWhileAnotherConnectionWrites(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		// Of the same driver: two SQLite libraries in one process do not see each
		// other's locks.
		other := h.open(t, a.Path())
		defer other.Close()
		other.SetMaxOpenConns(1)
		run(t, other, "BEGIN IMMEDIATE")
		for name, call := range map[string]func(ctx context.Context) error{
			"enqueue": func(ctx context.Context) error {
				_, err := a.Enqueue(ctx, message("late"))
				return err
			},
			"do": func(ctx context.Context) error {
				return a.Do(ctx, func(context.Context, *sqlite.Tx) error { return errors.New("it was begun") })
			},
			"discard": func(ctx context.Context) error {
				_, err := a.Discard(ctx, "nothing", "somebody")
				return err
			},
		} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			err := call(ctx)
			cancel()
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 15*time.Second {
				t.Errorf("%s: got %v after %v", name, err, took)
			}
		}
		run(t, other, "ROLLBACK")
		if _, err := a.Enqueue(t.Context(), message("on-time")); err != nil {
			t.Errorf("with the right to write free again: %v", err)
		}
	})
}
