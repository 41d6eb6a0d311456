package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// locked keeps a table to itself until it is let go.
func locked(t testing.TB, dsn, table string) (letGo func()) {
	t.Helper()
	lock := session(t, dsn, "BEGIN", "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
	return sync.OnceFunc(func() {
		if _, err := lock.Exec(context.WithoutCancel(t.Context()), "ROLLBACK"); err != nil {
			t.Error(err)
		}
	})
}

// What could not be written is not said to be: somebody has locked the tables for
// longer than a call waits.
func TestACallThatMeetsALockedTableFails(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{Source: "s", Node: "n", Timeout: 5 * time.Second, Lease: time.Minute})
	put(t, db, simple("m"))
	for _, table := range []string{"hf_source", "hf_queue", "hf_target"} {
		t.Cleanup(locked(t, dsn, table))
	}
	var all sync.WaitGroup
	defer all.Wait()
	for what, call := range map[string]func(ctx context.Context) error{
		"keep": func(ctx context.Context) error {
			_, err := db.Keep(ctx, time.Hour, received("kept"))
			return err
		},
		"record": func(ctx context.Context) error {
			_, err := db.Record(ctx, time.Hour, holdfast.Processed{Message: received("done")})
			return err
		},
		"discard": func(ctx context.Context) error {
			_, err := db.Discard(ctx, "m", "anna")
			return err
		},
		"reschedule": func(ctx context.Context) error {
			_, err := db.Reschedule(ctx, "m", holdfast.Reschedule{In: time.Hour})
			return err
		},
		"claim": func(ctx context.Context) error {
			_, err := db.Claim(ctx, map[string]int{"a": 1})
			return err
		},
		"list": func(ctx context.Context) error {
			_, err := db.List(ctx, holdfast.Query{})
			return err
		},
	} {
		all.Go(func() {
			if err := call(t.Context()); err == nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// A caller's open transaction has an id that others bring as well. They wait for
// it, beside everybody else; when it is undone, theirs is the first.
func TestWhoeverWaitsForAnIDThatIsUndoneIsTheFirst(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{Source: "s", Timeout: 20 * time.Second})
	put(t, s.DB, simple("names-are-known"))
	shared := bundle("b", []byte("x"), 1)
	shared.Messages[0].ID = "of-b"
	nobody := func(context.Context, *postgres.Tx, holdfast.Message) ([]byte, error) { return nil, nil }
	for what, c := range map[string]struct {
		hold func(tx *postgres.Tx) error
		same func(ctx context.Context) ([]holdfast.Result, error)
		rows string
	}{
		"of the inbox": {
			func(tx *postgres.Tx) error {
				_, err := tx.Process(t.Context(), received("in"), time.Hour, nobody)
				return err
			},
			func(ctx context.Context) ([]holdfast.Result, error) { return s.Keep(ctx, time.Hour, received("in")) },
			`SELECT count(*) FROM hf_inbox WHERE id = convert_to('in', 'UTF8') OR id = '\x02' || convert_to('in', 'UTF8')`,
		},
		"of a bundle's message": {
			func(tx *postgres.Tx) error {
				_, err := tx.Enqueue(t.Context(), simple("of-b"))
				return err
			},
			func(ctx context.Context) ([]holdfast.Result, error) { return s.Bundle(ctx, shared) },
			`SELECT count(*) FROM hf_bundle`,
		},
	} {
		t.Run(what, func(t *testing.T) {
			c2, err := pgx.Connect(t.Context(), s.dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer c2.Close(context.WithoutCancel(t.Context()))
			tx, err := c2.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := c.hold(s.In(tx)); err != nil {
				t.Fatal(err)
			}
			type answer struct {
				results []holdfast.Result
				err     error
			}
			told := make(chan answer, 1)
			go func() {
				results, err := c.same(t.Context())
				told <- answer{results, err}
			}()
			// Waiting for longer than the others are held up.
			waitFor(t, s.dsn, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
				AND clock_timestamp() - query_start > interval '300 ms'`, 1)
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			waittest.Until(t, "it is answered", func() bool { return len(told) == 1 })
			a := <-told
			if a.err != nil || len(a.results) != 1 || a.results[0].Err != nil || a.results[0].Receipt.Duplicate {
				t.Errorf("got %+v, %v; want that it is new", a.results, a.err)
			}
			if n := s.number(t, c.rows); n != 1 {
				t.Errorf("%d rows, want one", n)
			}
		})
	}
}

// A message that could be neither handed out nor settled is given back. What else a
// dead node had in hand does not wait for it.
func TestWhatCouldNotBeSettledHoldsUpNobody(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	dead := open(t, dsn, quick("dead"))
	b := bundle("gone", []byte("x"), 1)
	write(t, dead, b)
	put(t, dead, simple("other"))
	until(t, dead, 1)
	waittest.Until(t, "both are in its hand", func() bool {
		return len(claimOf(t, dead, 1)) == 1
	})
	dead.Die()
	if err := sql(t.Context(), dsn, `DELETE FROM hf_bundle`); err != nil {
		t.Fatal(err)
	}
	letGo := locked(t, dsn, "hf_final")
	t.Cleanup(letGo)
	db := opened(t, dsn, postgres.Options{Source: "s", Node: "n", Lease: 2 * time.Second, Timeout: 2 * time.Second})
	claimLost := func() {
		if batch, err := db.Claim(t.Context(), map[string]int{b.Messages[0].Destination: 1}); err == nil && len(batch.Claims) > 0 {
			t.Errorf("it is handed out: %+v", batch.Claims)
		}
	}
	waittest.Until(t, "the one without a payload is in hand", func() bool {
		claimLost()
		return count(t, dsn, `SELECT count(*) FROM hf_queue JOIN hf_node USING (owner) WHERE name = 'n'`) == 1
	})
	other := until(t, db, 1)
	if other[0].Message.ID != "other" {
		t.Errorf("handed out is %s", other[0].Message.ID)
	}
	letGo()
	settleAll(t, db, other, done())
	waittest.Until(t, "the first is parked", func() bool {
		claimLost()
		return count(t, dsn, `SELECT count(*) FROM hf_final WHERE state = 3`) == 1
	})
}
