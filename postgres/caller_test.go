package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// OI-01: a message exists if the caller commits.
func TestEnqueueInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, s *shop, begin func(begun) callersTx) {
		t.Helper()
		ctx := t.Context()
		enqueue := func(tx callersTx) {
			t.Helper()
			if err := tx.exec(ctx, "INSERT INTO orders VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			m := order("m")
			m.TTL, m.Delay, m.CorrelationID, m.Retry = time.Hour, time.Millisecond, "c", &holdfast.RetryPolicy{Attempts: 3}
			keyed := order("keyed")
			keyed.OrderingKey = "k"
			r, err := tx.Enqueue(ctx, m, order(""), m, keyed)
			if err != nil || r[0].Duplicate || r[1].Duplicate || !r[2].Duplicate || r[3].Duplicate {
				t.Fatalf("%+v, %v", r, err)
			}
			if r, err := tx.Enqueue(ctx, m); err != nil || !r[0].Duplicate {
				t.Errorf("again: %+v, %v", r, err)
			}
		}
		tx := begin(begun{})
		enqueue(tx)
		if err := tx.rollback(); err != nil {
			t.Fatal(err)
		}
		s.stand(t, 0, 0, 0)
		tx = begin(begun{})
		enqueue(tx)
		if n := s.messages(t); n != 0 {
			t.Errorf("%d messages before the commit", n)
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		s.stand(t, 1, 3, 0)
		var got []holdfast.Claim
		waittest.Until(t, "three are claimed", func() bool {
			b, err := s.Claim(ctx, map[string]int{"stock": 10})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b.Claims...)
			return len(got) >= 3
		})
		if len(got) != 3 {
			t.Errorf("%d claims", len(got))
		}
		s.learned(t, 3, 0)
	})
}

// What is refused leaves the caller's transaction usable, and nothing of the call.
func TestRefusalLeavesTheTransaction(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, s *shop, begin func(begun) callersTx) {
		t.Helper()
		ctx := t.Context()
		if _, err := s.Enqueue(ctx, order("taken")); err != nil {
			t.Fatal(err)
		}
		tx := begin(begun{})
		other, keyed, invalid := order("taken"), order("keyed"), order("two words")
		other.Payload, keyed.OrderingKey = []byte("other"), "k"
		for name, c := range map[string]struct {
			ms   []holdfast.Message
			want error
		}{
			"a conflict":                   {[]holdfast.Message{other}, holdfast.ErrConflict},
			"a conflict, and two are new":  {[]holdfast.Message{order("new"), other, keyed}, holdfast.ErrConflict},
			"a conflict within the call":   {[]holdfast.Message{order("new"), func() holdfast.Message { m := order("new"); m.Kind = holdfast.Command; return m }()}, holdfast.ErrConflict},
			"an invalid one among the new": {[]holdfast.Message{order("new"), invalid}, holdfast.ErrInvalid},
		} {
			if _, err := tx.Enqueue(ctx, c.ms...); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := tx.exec(ctx, "INSERT INTO orders VALUES (1)"); err != nil {
			t.Errorf("the transaction is not usable: %v", err)
		}
		if r, err := tx.Enqueue(ctx, order("new"), order("taken")); err != nil || r[0].Duplicate || !r[1].Duplicate {
			t.Errorf("%+v, %v", r, err)
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		s.stand(t, 1, 2, 0)
		s.learned(t, 2, 0)
	})
}

// OI-07 in the caller's own transaction: id, effect and response commit with
// the caller's rows, and a handler's error or panic undoes the handler alone.
func TestProcessInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, s *shop, begin func(begun) callersTx) {
		t.Helper()
		ctx := t.Context()
		book := func(n int, fail error) func(ctx context.Context, tx callersTx) error {
			return func(ctx context.Context, tx callersTx) error {
				if err := tx.exec(ctx, fmt.Sprintf("INSERT INTO orders VALUES (%d)", n)); err != nil {
					return err
				}
				if _, err := s.Enqueue(ctx, order("nested")); !errors.Is(err, holdfast.ErrNested) {
					t.Errorf("enqueue in the handler: %v", err)
				}
				if _, err := tx.Enqueue(ctx, order("")); err != nil {
					return err
				}
				return fail
			}
		}
		tx := begin(begun{})
		if r, err := tx.process(ctx, received("m"), book(1, nil)); err != nil || r.Duplicate {
			t.Errorf("first: %+v, %v", r, err)
		}
		if err := tx.rollback(); err != nil {
			t.Fatal(err)
		}
		s.stand(t, 0, 0, 0)

		broken := errors.New("broken")
		tx = begin(begun{})
		if err := tx.exec(ctx, "INSERT INTO orders VALUES (100)"); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.process(ctx, received("m"), book(2, broken)); !errors.Is(err, broken) {
			t.Errorf("got %v, want the handler's error", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_, _ = tx.process(ctx, received("m"), func(ctx context.Context, tx callersTx) error { panic(book(2, nil)(ctx, tx)) })
		}()
		if _, err := tx.process(ctx, received("m"), func(ctx context.Context, tx callersTx) error {
			_ = tx.exec(ctx, "INSERT INTO orders VALUES (100)") // and does not tell that it failed
			return nil
		}); err == nil {
			t.Error("a handler whose statement failed has succeeded")
		}
		for i, duplicate := range []bool{false, true} {
			r, err := tx.process(ctx, received("m"), book(3, nil))
			if err != nil || r.Duplicate != duplicate || string(r.Response) != "booked" {
				t.Errorf("%d: %+v, %v", i, r, err)
			}
		}
		other := received("m")
		other.Payload = []byte("2")
		if _, err := tx.process(ctx, other, book(4, nil)); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		s.stand(t, 2, 1, 1)
		s.learned(t, 1, 1)
	})
}

// OI-01: the caller goes back to a savepoint between two calls.
func TestCallersSavepoint(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, s *shop, begin func(begun) callersTx) {
		t.Helper()
		ctx := t.Context()
		exec := func(tx callersTx, list ...string) {
			t.Helper()
			for _, q := range list {
				if err := tx.exec(ctx, q); err != nil {
					t.Fatal(err)
				}
			}
		}
		tx := begin(begun{})
		exec(tx, "SET LOCAL synchronous_commit = off", "SAVEPOINT mine")
		if _, err := tx.Enqueue(ctx, order("undone")); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.process(ctx, received("1"), func(context.Context, callersTx) error { return nil }); err != nil {
			t.Fatal(err)
		}
		exec(tx, "ROLLBACK TO mine", "RELEASE mine")
		if r, err := tx.Enqueue(ctx, order("kept")); err != nil || r[0].Duplicate {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := tx.process(ctx, received("1"), func(context.Context, callersTx) error { return nil }); err != nil || r.Duplicate {
			t.Errorf("%+v, %v", r, err)
		}
		// What is accepted is durable when it is committed.
		exec(tx, "DO $$ BEGIN ASSERT current_setting('synchronous_commit') = 'on'; END $$")
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		s.stand(t, 0, 1, 1)
		s.learned(t, 1, 1)
	})
}

// A transaction that cannot hold a message is refused, with the reason.
func TestTransactionsThatAreRefused(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, s *shop, begin func(begun) callersTx) {
		t.Helper()
		ctx := t.Context()
		other, bare := newShop(t, postgres.Options{}), pgtest.Shared(t).Database(t)
		for name, c := range map[string]struct {
			b      begun
			before string
			fails  bool
			want   string
		}{
			"read-only":                    {b: begun{isolation: "READ ONLY"}, want: "read-only"},
			"a search_path elsewhere":      {before: "SET LOCAL search_path = pg_catalog", want: "without the tables"},
			"ended by a COMMIT":            {before: "COMMIT", want: "ended by a statement"},
			"ended by a ROLLBACK":          {before: "ROLLBACK", want: "ended by a statement"},
			"aborted by a statement of it": {before: "SELECT 1/0", fails: true, want: "aborted"},
			"of another store":             {b: begun{dsn: other.dsn}, want: "another database"},
			"of a database without store":  {b: begun{dsn: bare}, want: "without the tables"},
		} {
			tx := begin(c.b)
			if c.before != "" {
				if err := tx.exec(ctx, c.before); (err != nil) != c.fails {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := tx.Enqueue(ctx, order("late")); !mentions(err, c.want) {
				t.Errorf("%s: enqueue: %v", name, err)
			}
			if _, err := tx.process(ctx, received("late"), func(context.Context, callersTx) error { return nil }); err == nil {
				t.Errorf("%s: processed", name)
			}
		}
		s.stand(t, 0, 0, 0)
		other.stand(t, 0, 0, 0)
	})
}

func mentions(err error, what string) bool { return err != nil && strings.Contains(err.Error(), what) }

// A transaction with an older snapshot than the id is told to run again; it
// never takes the id for new.
func TestOlderSnapshots(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		t.Run("pgx, "+isolation, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, postgres.Options{})
			s.olderSnapshots(t, isolation, func(b begun) callersTx { return s.beginPgx(t, b, pgx.QueryExecModeCacheStatement) })
		})
		t.Run("database/sql, "+isolation, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, postgres.Options{})
			s.olderSnapshots(t, isolation, func(b begun) callersTx { return s.beginSQL(t, b, pgx.QueryExecModeCacheStatement) })
		})
	}
}

func (s *shop) olderSnapshots(t *testing.T, isolation string, begin func(begun) callersTx) {
	t.Helper()
	ctx := t.Context()
	nothing := func(context.Context, callersTx) error { return nil }
	if _, err := s.Enqueue(ctx, order("before")); err != nil {
		t.Fatal(err)
	}
	old := func() callersTx {
		t.Helper()
		tx := begin(begun{isolation: "ISOLATION LEVEL " + isolation})
		if err := tx.exec(ctx, "SELECT count(*) FROM orders"); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	tx := old()
	m := order("new")
	m.Destination = "nobody-has-met-it"
	if r, err := tx.Enqueue(ctx, order("before"), m); err != nil || !r[0].Duplicate || r[1].Duplicate {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.Enqueue(ctx, order("after")); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Enqueue(ctx, order("after")); !mentions(err, "run the whole transaction again") {
		t.Errorf("enqueue: %v", err)
	}
	tx = old()
	if _, err := s.Record(ctx, time.Hour, holdfast.Processed{Message: received("m")}); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.process(ctx, received("m"), nothing); !mentions(err, "run the whole transaction again") {
		t.Errorf("process: %v", err)
	}
	tx = old()
	if r, err := tx.process(ctx, received("m"), nothing); err != nil || !r.Duplicate {
		t.Errorf("%+v, %v", r, err)
	}
	if err := tx.commit(); err != nil {
		t.Error(err)
	}
}
