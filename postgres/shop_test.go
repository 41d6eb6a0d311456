package postgres_test

import (
	"cmp"
	"context"
	stdsql "database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
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
	waittest.Until(t, fmt.Sprintf("%d are pending and %d in the inbox", pending, inbox), func() bool {
		c := s.Counts()
		return c.Pending == pending && c.Inbox == inbox
	})
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
