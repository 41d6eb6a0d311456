package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func message(id holdfast.ID) holdfast.Message {
	return holdfast.Message{ID: id, Destination: "a", Endpoint: "E"}
}

func enqueue(t testing.TB, db *sqlite.DB, ms ...holdfast.Message) {
	t.Helper()
	if _, err := db.Enqueue(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
}

func claim(t testing.TB, db *sqlite.DB, n int) []holdfast.Claim {
	t.Helper()
	b, err := db.Claim(t.Context(), map[string]int{"a": n})
	if err != nil {
		t.Fatal(err)
	}
	return b.Claims
}

func settlement(c holdfast.Claim, s holdfast.State) holdfast.Settlement {
	return holdfast.Settlement{Seq: c.Seq, Token: c.Token, State: s, Reason: holdfast.ReasonPermanent, RetryIn: time.Hour}
}

func stateOf(t testing.TB, db *sqlite.DB, id holdfast.ID) string {
	t.Helper()
	r, err := db.Get(t.Context(), id)
	if errors.Is(err, holdfast.ErrNotFound) {
		return "nothing"
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.State.String()
}

// every statement of each kind of work fails once: the caller gets an error,
// nothing of the work is there, and the same call succeeds afterwards.
//
// Edge case 61.
func TestAnyStatementMayFail(t *testing.T) {
	t.Parallel()
	handler := func(ctx context.Context, tx *sqlite.Tx, _ holdfast.Message) ([]byte, error) {
		_, err := tx.Enqueue(ctx, message("effect"))
		return []byte("r"), err
	}
	for name, c := range map[string]struct {
		work func(ctx context.Context, db *sqlite.DB, claims []holdfast.Claim) error
		done func(t testing.TB, db *sqlite.DB) bool
	}{
		"enqueue": {
			work: func(ctx context.Context, db *sqlite.DB, _ []holdfast.Claim) error {
				m := message("x")
				m.Destination, m.OrderingKey, m.Source = "new", "k", "new"
				_, err := db.Enqueue(ctx, m, message("y"))
				return err
			},
			done: func(t testing.TB, db *sqlite.DB) bool {
				x, y := stateOf(t, db, "x"), stateOf(t, db, "y")
				if x != y {
					t.Errorf("x is %s, y is %s", x, y)
				}
				return x != "nothing"
			},
		},
		"settle": {
			work: func(ctx context.Context, db *sqlite.DB, c []holdfast.Claim) error {
				won, err := db.Settle(ctx, settlement(c[0], holdfast.Delivered), settlement(c[1], holdfast.Parked), settlement(c[2], holdfast.Pending))
				if err == nil && (!won[0] || !won[1] || !won[2]) {
					t.Errorf("settle: won %v", won)
				}
				return err
			},
			done: func(t testing.TB, db *sqlite.DB) bool {
				return stateOf(t, db, "c0") == "delivered" && stateOf(t, db, "c1") == "parked" && stateOf(t, db, "c2") == "pending"
			},
		},
		"requeue": {
			work: func(ctx context.Context, db *sqlite.DB, _ []holdfast.Claim) error {
				_, err := db.Requeue(ctx, "parked", holdfast.Requeue{TTL: time.Hour})
				return err
			},
			done: func(t testing.TB, db *sqlite.DB) bool { return stateOf(t, db, "parked") == "pending" },
		},
		"strict lane": {
			work: func(ctx context.Context, db *sqlite.DB, _ []holdfast.Claim) error {
				return db.ConfigureLane(ctx, "b", holdfast.LaneSettings{Strict: true})
			},
			done: func(t testing.TB, db *sqlite.DB) bool {
				rows, err := db.SQL(t.Context(), "SELECT strict FROM hf_lane WHERE destination = 'b'")
				if err != nil {
					t.Fatal(err)
				}
				return len(rows) == 1 && rows[0][0] == int64(1)
			},
		},
		"keep": {
			work: func(ctx context.Context, db *sqlite.DB, _ []holdfast.Claim) error {
				_, err := db.Keep(ctx, time.Hour, holdfast.Message{ID: "i", Source: "new", Endpoint: "E"})
				return err
			},
			done: func(_ testing.TB, db *sqlite.DB) bool { return db.Counts().Kept == 1 },
		},
		"process": {
			work: func(ctx context.Context, db *sqlite.DB, _ []holdfast.Claim) error {
				_, err := db.Process(ctx, holdfast.Message{ID: "i", Source: "new", Endpoint: "E"}, time.Hour, handler)
				return err
			},
			done: func(t testing.TB, db *sqlite.DB) bool { return stateOf(t, db, "effect") == "pending" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				p := &tap{}
				db := fresh(t, sqlite.Options{Source: "test"}.With(p.wrap))
				enqueue(t, db, message("parked"), message("c0"), message("c1"), message("c2"))
				claims := claim(t, db, 4)
				if _, err := db.Settle(t.Context(), settlement(claims[0], holdfast.Parked)); err != nil {
					t.Fatal(err)
				}
				p.set(nth(n, errors.New("injected"), "BEGIN IMMEDIATE", "SELECT", "INSERT", "UPDATE", "DELETE", "COMMIT"), nil)
				err := c.work(t.Context(), db, claims[1:])
				p.set(nil, nil)
				switch done := c.done(t, db); {
				case err != nil && done:
					t.Errorf("statement %d: %v, and yet it happened", n, err)
				case err == nil && !done:
					t.Errorf("statement %d: acknowledged, and it did not happen", n)
				}
				if err != nil {
					if err := c.work(t.Context(), db, claims[1:]); err != nil || !c.done(t, db) {
						t.Errorf("statement %d: the second try: %v", n, err)
					}
				}
				enqueue(t, db, message("later"))
				if got := claim(t, db, 10); len(got) == 0 {
					t.Errorf("statement %d: nothing can be claimed afterwards", n)
				}
				audit(t, db)
				shut(t, db)
				if err == nil {
					if n < 4 {
						t.Errorf("only %d statements were reached", n)
					}
					return
				}
			}
		})
	}
}

// group makes works wait for each other, so that they share a transaction:
// a turn is held until they all stand in the queue.
func group(t testing.TB, db *sqlite.DB, works ...func() error) []error {
	t.Helper()
	errs := make([]error, len(works))
	var all sync.WaitGroup
	err := db.Do(t.Context(), func(context.Context, *sqlite.Tx) error {
		for i, w := range works {
			queued := db.Queued()
			all.Go(func() { errs[i] = w() })
			waittest.Until(t, "it is queued", func() bool { return db.Queued() != queued })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all.Wait()
	return errs
}

func TestOneBadWorkOfAGroupHarmsNoOther(t *testing.T) {
	t.Parallel()
	p := &tap{}
	db := fresh(t, sqlite.Options{Source: "test"}.With(p.wrap))
	defer shut(t, db)
	enqueue(t, db, message("claimed"))
	c := claim(t, db, 1)[0]
	var works []func() error
	const many = 20
	for i := range many {
		works = append(works, func() error {
			m := message(holdfast.ID(fmt.Sprint("m", i)))
			if i == 7 {
				m.OrderingKey = "broken"
			}
			_, err := db.Enqueue(context.Background(), m)
			return err
		})
	}
	works = append(works, func() error {
		won, err := db.Settle(context.Background(), settlement(c, holdfast.Delivered))
		if err == nil && !won[0] {
			err = errors.New("the settlement did not take effect")
		}
		return err
	}, func() error {
		return db.ConfigureLane(context.Background(), "a", holdfast.LaneSettings{Strict: true})
	})
	var commits int
	p.set(func(sql string) error {
		if strings.HasPrefix(sql, "SELECT seq, state, due, expires FROM hf_message WHERE lane") { // only a keyed message asks
			return errors.New("injected")
		}
		if sql == sqlite.CommitNow {
			commits++
		}
		return nil
	}, nil)
	errs := group(t, db, works...)
	p.set(nil, nil)
	for i, err := range errs {
		if (err != nil) != (i == 7) {
			t.Errorf("work %d: %v", i, err)
		}
	}
	if commits < many {
		t.Errorf("%d commits: the works did not share a transaction that failed", commits)
	}
	for i := range many {
		want := "pending"
		if i == 7 {
			want = "nothing"
		}
		if got := stateOf(t, db, holdfast.ID(fmt.Sprint("m", i))); got != want {
			t.Errorf("m%d: got %s, want %s", i, got, want)
		}
	}
	if got := claim(t, db, 100); len(got) != many-1 {
		t.Errorf("%d claims, want %d", len(got), many-1)
	}
	audit(t, db)
}

// A lock that another program holds fails the whole group at once: to wait
// for it once per work would hold everybody up for hours.
func TestForeignLockFailsTheGroupOnce(t *testing.T) {
	t.Parallel()
	p := &tap{}
	db := fresh(t, sqlite.Options{}.With(p.wrap))
	defer shut(t, db)
	begins := 0
	var works []func() error
	for range 10 {
		works = append(works, func() error {
			_, err := db.Enqueue(context.Background(), holdfast.Message{Destination: "a", Endpoint: "E"})
			return err
		})
	}
	inGroup := false
	p.set(func(sql string) error {
		if sql == "BEGIN IMMEDIATE" && inGroup {
			begins++
			return errBusy
		}
		inGroup = inGroup || sql == sqlite.CommitNow // of the turn that gathers them
		return nil
	}, nil)
	for i, err := range group(t, db, works...) {
		if err == nil {
			t.Errorf("work %d was acknowledged", i)
		}
	}
	p.set(nil, nil)
	if begins != 1 {
		t.Errorf("%d transactions were begun, want 1", begins)
	}
	enqueue(t, db, message("m"))
}

// G: after a failed sync, nothing is acknowledged before a checkpoint has
// rewritten everything, neither alone nor in a group; a disk that goes on
// refusing stops the store.
//
// Edge case 60.
func TestFailedSyncIsNotForgotten(t *testing.T) {
	t.Parallel()
	for name, count := range map[string]int{"alone": 1, "in a group": 5} {
		p := &tap{}
		db := fresh(t, sqlite.Options{}.With(p.wrap))
		var works []func() error
		for i := range count {
			works = append(works, func() error {
				_, err := db.Enqueue(context.Background(), message(holdfast.ID(fmt.Sprint("m", i))))
				return err
			})
		}
		var events []string
		failing := 0
		p.set(func(sql string) error {
			if strings.Contains(sql, "wal_checkpoint") || sql == sqlite.CommitNow {
				events = append(events, sql)
			}
			if sql == sqlite.CommitNow {
				if failing++; failing == 2 { // the first is the turn's that gathers them
					return errIOSync
				}
			}
			return nil
		}, nil)
		errs := group(t, db, works...)
		if count == 1 && errs[0] == nil {
			t.Errorf("%s: a commit that failed was acknowledged", name)
		}
		enqueue(t, db, message("later"))
		p.set(nil, nil)
		if len(events) < 3 || !strings.Contains(events[2], "wal_checkpoint") {
			t.Errorf("%s: after the failed sync: %q", name, events)
		}
		audit(t, db)
		shut(t, db)
	}

	p := &tap{}
	db := fresh(t, sqlite.Options{}.With(p.wrap))
	p.set(func(sql string) error {
		if strings.Contains(sql, "wal_checkpoint") || sql == sqlite.CommitNow {
			return errIOSync
		}
		return nil
	}, nil)
	for n := 0; db.Err() == nil; n++ {
		if _, err := db.Enqueue(t.Context(), message("never")); err == nil {
			t.Fatal("acknowledged")
		}
		if n > 20 {
			t.Fatal("the store does not stop")
		}
	}
	<-db.Failed()
	p.set(nil, nil)
	shut(t, db)
}

// F: a full disk is a typed refusal; what was acknowledged stays, and when
// there is room again everything goes on without a restart.
//
// Edge case 52.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	limit := func(pages int) {
		t.Helper()
		if _, err := db.SQL(t.Context(), fmt.Sprint("PRAGMA max_page_count = ", pages)); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := db.SQL(t.Context(), "PRAGMA page_count")
	if err != nil {
		t.Fatal(err)
	}
	limit(int(rows[0][0].(int64)) + 20)
	big := func(id string) holdfast.Message {
		m := message(holdfast.ID(id))
		m.Payload = make([]byte, 10<<10)
		return m
	}
	var accepted []holdfast.ID
	var full error
	for i := range 100 {
		m := big(fmt.Sprint("m", i))
		if _, full = db.Enqueue(t.Context(), m); full != nil {
			break
		}
		accepted = append(accepted, m.ID)
	}
	if !errors.Is(full, holdfast.ErrDiskFull) || len(accepted) == 0 {
		t.Fatalf("got %v after %d messages, want ErrDiskFull", full, len(accepted))
	}
	err = db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.Enqueue(ctx, big("do"))
		return err
	})
	if !errors.Is(err, holdfast.ErrDiskFull) {
		t.Errorf("do: got %v, want ErrDiskFull", err)
	}
	if !db.Full() {
		t.Error("the store does not say that the disk is full")
	}
	// Small works of a group still fit beside one that does not.
	errs := group(t, db,
		func() error { _, err := db.Enqueue(context.Background(), big("too-big")); return err },
		func() error { _, err := db.Enqueue(context.Background(), message("small")); return err },
	)
	if !errors.Is(errs[0], holdfast.ErrDiskFull) || errs[1] != nil {
		t.Errorf("got %v and %v, want ErrDiskFull and nil", errs[0], errs[1])
	}
	accepted = append(accepted, "small")
	claims := claim(t, db, 1000)
	if len(claims) != len(accepted) {
		t.Errorf("%d claims, %d accepted", len(claims), len(accepted))
	}
	if _, err := db.Settle(t.Context(), settlement(claims[0], holdfast.Delivered)); err != nil {
		t.Errorf("settle with a full disk: %v", err)
	}
	audit(t, db)
	limit(1 << 30)
	enqueue(t, db, big("room"))
	shut(t, db)
	db = open(t, path, sqlite.Options{})
	defer shut(t, db)
	audit(t, db)
	for _, id := range append(accepted, "room") {
		if s := stateOf(t, db, id); s != "pending" && s != "delivered" {
			t.Errorf("%s is %s", id, s)
		}
	}
	for _, id := range []holdfast.ID{"do", "too-big"} {
		if s := stateOf(t, db, id); s != "nothing" {
			t.Errorf("%s was refused and is %s", id, s)
		}
	}
}
