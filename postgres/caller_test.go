package postgres_test

import (
	"cmp"
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// shop is a store in the database of a program that has orders.
type shop struct {
	*postgres.DB
	dsn string
}

func newShop(t testing.TB, o postgres.Options) *shop {
	t.Helper()
	dsn := database(t)
	statements(t, dsn, "CREATE TABLE orders (id integer PRIMARY KEY, approved boolean NOT NULL DEFAULT false)")
	o.Lease = time.Second // what others commit is looked for with each heartbeat
	return &shop{opened(t, dsn, o), dsn}
}

func statements(t testing.TB, dsn string, list ...string) {
	t.Helper()
	if err := sql(t.Context(), dsn, list...); err != nil {
		t.Fatal(err)
	}
}

// number reads one number of the database, on a connection of its own.
func (s *shop) number(t testing.TB, query string, args ...any) (n int64) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if err := c.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *shop) orders(t testing.TB) int64 {
	t.Helper()
	return s.number(t, "SELECT count(*) FROM orders")
}

func (s *shop) messages(t testing.TB) int64 {
	t.Helper()
	return s.number(t, "SELECT count(*) FROM hf_message")
}

func (s *shop) ids(t testing.TB) int64 {
	t.Helper()
	return s.number(t, "SELECT count(*) FROM hf_inbox")
}

// stand compares what is committed.
func (s *shop) stand(t testing.TB, orders, messages, ids int64) {
	t.Helper()
	if o, m, i := s.orders(t), s.messages(t), s.ids(t); o != orders || m != messages || i != ids {
		t.Errorf("%d orders, %d messages, %d ids; want %d, %d, %d", o, m, i, orders, messages, ids)
	}
}

// learned waits until the counters in memory are what they should be.
func (s *shop) learned(t testing.TB, pending, inbox int64) {
	t.Helper()
	for range 500 {
		if c := s.Counts(); c.Pending == pending && c.Inbox == inbox {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	c := s.Counts()
	t.Errorf("%d pending and an inbox of %d, want %d and %d", c.Pending, c.Inbox, pending, inbox)
}

func order(id holdfast.ID) holdfast.Message {
	return holdfast.Message{ID: id, Destination: "stock", Endpoint: "Approved", Payload: []byte(`{"a":"\u0000"}`), Headers: map[string]string{"h": "v"}}
}

func received(id holdfast.ID) holdfast.Message {
	return holdfast.Message{ID: id, Source: "web", Endpoint: "Book", Payload: []byte("1")}
}

// callersTx is a caller's transaction, of whatever driver.
type callersTx interface {
	holdfast.Enqueuer
	exec(ctx context.Context, query string) error
	process(ctx context.Context, m holdfast.Message, h func(ctx context.Context, tx callersTx) error) (holdfast.Receipt, error)
	commit() error
	rollback() error
}

type pgxTx struct {
	*postgres.Tx
	own pgx.Tx
}

func (t pgxTx) exec(ctx context.Context, query string) error {
	_, err := t.Exec(ctx, query)
	return err
}

func (t pgxTx) process(ctx context.Context, m holdfast.Message, h func(ctx context.Context, tx callersTx) error) (holdfast.Receipt, error) {
	return t.Process(ctx, m, 0, func(ctx context.Context, tx *postgres.Tx, _ holdfast.Message) ([]byte, error) {
		return []byte("booked"), h(ctx, pgxTx{tx, nil})
	})
}

func (t pgxTx) commit() error   { return t.own.Commit(context.Background()) }
func (t pgxTx) rollback() error { return t.own.Rollback(context.Background()) }

type sqlTx struct {
	*postgres.SQLTx
	own *stdsql.Tx
}

func (t sqlTx) exec(ctx context.Context, query string) error {
	_, err := t.ExecContext(ctx, query)
	return err
}

func (t sqlTx) process(ctx context.Context, m holdfast.Message, h func(ctx context.Context, tx callersTx) error) (holdfast.Receipt, error) {
	return t.Process(ctx, m, 0, func(ctx context.Context, tx *postgres.SQLTx, _ holdfast.Message) ([]byte, error) {
		return []byte("booked"), h(ctx, sqlTx{tx, nil})
	})
}

func (t sqlTx) commit() error   { return t.own.Commit() }
func (t sqlTx) rollback() error { return t.own.Rollback() }

// begun says of what kind a caller's transaction is.
type begun struct {
	isolation string
	dsn       string // zero: the store's database
}

// eachCaller runs a test with each kind of transaction that a caller may have,
// each of a pool of one.
func eachCaller(t *testing.T, test func(t *testing.T, s *shop, begin func(begun) callersTx)) {
	t.Helper()
	for name, mode := range map[string]pgx.QueryExecMode{
		"": pgx.QueryExecModeCacheStatement, ", exec": pgx.QueryExecModeExec, ", simple protocol": pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run("pgx"+name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, postgres.Options{})
			test(t, s, func(b begun) callersTx { return s.beginPgx(t, b, mode) })
		})
		t.Run("database/sql"+name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, postgres.Options{})
			test(t, s, func(b begun) callersTx { return s.beginSQL(t, b, mode) })
		})
	}
}

func (s *shop) beginPgx(t testing.TB, b begun, mode pgx.QueryExecMode) callersTx {
	t.Helper()
	config, err := pgxpool.ParseConfig(cmp.Or(b.dsn, s.dsn))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns, config.ConnConfig.DefaultQueryExecMode = 1, mode
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{BeginQuery: "BEGIN " + b.isolation})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = tx.Rollback(context.Background())
		pool.Close()
	})
	return pgxTx{s.In(tx), tx}
}

func (s *shop) beginSQL(t testing.TB, b begun, mode pgx.QueryExecMode) callersTx {
	t.Helper()
	config, err := pgx.ParseConfig(cmp.Or(b.dsn, s.dsn))
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = mode
	handle := stdlib.OpenDB(*config)
	handle.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = handle.Close() })
	tx, err := handle.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	c := sqlTx{s.InSQL(tx), tx}
	if b.isolation != "" {
		if err := c.exec(t.Context(), "SET TRANSACTION "+b.isolation); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

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
		for range 100 {
			b, err := s.Claim(ctx, map[string]int{"stock": 10})
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, b.Claims...); len(got) == 3 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
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
