package sqlite_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// immediate are handles as the guide advises, with little patience.
func immediate() map[string]handle {
	return map[string]handle{
		"modernc": {"sqlite", "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(1)&_txlock=immediate", 4},
		"mattn":   {"sqlite3", "?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=1&_txlock=immediate", 4},
	}
}

// A look at the file does not ask for the right to write, whatever the handle
// begins transactions with: messages go out while a transaction of the
// caller's is open, and nobody's write meets ours.
func TestLooksDoNotTakeTheRightToWrite(t *testing.T) {
	t.Parallel()
	for name, h := range immediate() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := h.shop(t, sqlite.Options{})
			defer a.shut(t)
			enqueue(t, a.DB, message("1"))
			tx := a.begin(t)
			if _, err := a.In(tx).Enqueue(t.Context(), message("2")); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			learned(t, a.DB, 2, 0)
			tx = a.begin(t)
			order(t, tx, 1)
			if b, err := a.Claim(t.Context(), map[string]int{"a": 10}); err != nil || len(b.Claims) != 2 {
				t.Errorf("claimed %v (%v)", idsOf(b.Claims), err)
			}
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A program that starts while another one writes waits for it, as every later
// call does, even if its handle has no busy_timeout.
func TestAttachWaitsForAWriter(t *testing.T) {
	t.Parallel()
	for name, h := range immediate() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "shop.db")
			other := h.open(t, path)
			defer other.Close()
			tx, err := other.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
			ended := make(chan error, 1)
			go func() {
				time.Sleep(200 * time.Millisecond)
				ended <- errors.Join(err, tx.Commit())
			}()
			a := h.attach(t, path, sqlite.Options{})
			defer a.shut(t)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			enqueue(t, a.DB, message("m"))
		})
	}
}

// A program that closes its handle first hears of it, once and not ten times a
// second, and Close does not wait for what cannot come.
func TestHandleIsClosedFirst(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		racetest.Bubble(t, func(t *testing.T) {
			var log strings.Builder
			o := virtual()
			o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
			a := h.shop(t, o)
			if err := a.handle.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			if _, err := a.Enqueue(t.Context(), message("m")); err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("enqueue: got %v", err)
			}
			began := time.Now()
			if err := a.DB.Close(); err == nil || time.Since(began) > time.Second {
				t.Errorf("close: %v after %s, want an error at once", err, time.Since(began))
			}
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Errorf("%d lines of log: %.400s", n, log.String())
			}
		})
	})
}

// The wait for another's transaction ends when it should, however long each
// statement waits by itself.
func TestWaitForAWriterEnds(t *testing.T) {
	t.Parallel()
	for name, h := range handles() {
		if h.pool == 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.options = strings.Replace(h.options, "5000", "1000", 1)
			a := h.shop(t, sqlite.Options{TurnWait: 500 * time.Millisecond})
			defer a.shut(t)
			tx := a.begin(t)
			order(t, tx, 1)
			began := time.Now()
			if _, err := a.Enqueue(t.Context(), message("m")); err == nil || time.Since(began) > 6*time.Second {
				t.Errorf("got %v after %s, want an error within 2 s", err, time.Since(began))
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			enqueue(t, a.DB, message("m"))
		})
	}
}

// Reads wait for no writer, and not for the transaction that they are called in.
func TestReadsWaitForNoWriter(t *testing.T) {
	t.Parallel()
	for name, h := range immediate() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := h.shop(t, sqlite.Options{})
			defer a.shut(t)
			enqueue(t, a.DB, message("m"))
			if err := a.Do(t.Context(), func(ctx context.Context, _ *sqlite.Tx) error {
				_, err := a.Get(ctx, "m")
				_, err2 := a.List(ctx, holdfast.Query{Destination: "a"})
				_, err3 := a.List(ctx, holdfast.Query{Destination: "nobody"})
				return errors.Join(err, err2, err3)
			}); err != nil {
				t.Error(err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := a.Get(ended, "m"); err == nil {
				t.Error("no error")
			}
		})
	}
}
