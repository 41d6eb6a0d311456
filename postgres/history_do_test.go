package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// F1-124: a dump is restored in place while the function of Do runs. What that
// enqueues or processes by numbers of before is refused, also if it goes on, and
// nothing is kept under a number that is another's now.
func TestADumpIsRestoredUnderATransaction(t *testing.T) {
	t.Parallel()
	named := func(endpoint string) holdfast.Message {
		m := simple("")
		m.Endpoint = endpoint
		return m
	}
	for name, write := range map[string]func(ctx context.Context, tx *postgres.Tx) error{
		"enqueue": func(ctx context.Context, tx *postgres.Tx) error {
			_, err := tx.Enqueue(ctx, named("Refund"))
			return err
		},
		"process": func(ctx context.Context, tx *postgres.Tx) error {
			m := named("Refund")
			m.ID, m.Source = "in", "sender"
			_, err := tx.Process(ctx, m, 0, func(context.Context, *postgres.Tx, holdfast.Message) ([]byte, error) { return nil, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Shared(t)
			dsn := server.Database(t)
			db := opened(t, dsn, postgres.Options{Source: "s", Node: "n", Lease: 5 * time.Second})
			send := func(m holdfast.Message) error {
				_, err := db.Enqueue(t.Context(), m)
				return err
			}
			if err := send(named("Order")); err != nil {
				t.Fatal(err)
			}
			dump := nameOf(t, dsn) + ".dump"
			if err := server.Tool("pg_dump", "--format=custom", "--file="+dump, "--dbname="+dsn); err != nil {
				t.Fatal(err)
			}
			if err := send(named("Refund")); err != nil {
				t.Fatal(err)
			}
			if err := db.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error { return write(ctx, tx) }); err != nil {
				t.Fatal(err) // from here on all numbers are known
			}
			goOn := db.StopBeats()
			t.Cleanup(goOn)
			err := db.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
				if err := server.Tool("pg_restore", "--clean", "--if-exists", "--exit-on-error", "--single-transaction", "--dbname="+dsn, dump); err != nil {
					t.Fatal(err)
				}
				if err := sql(t.Context(), dsn, `INSERT INTO hf_route (lane, source, kind, endpoint) SELECT lane, source, kind, 'Cancel' FROM hf_route`,
					`INSERT INTO hf_source (name) VALUES ('another')`); err != nil {
					t.Fatal(err)
				}
				if err := write(ctx, tx); !errors.Is(err, holdfast.ErrUnavailable) {
					t.Errorf("in the middle of it: %v", err)
				}
				return nil // whatever it was told
			})
			if !errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("Do: %v", err)
			}
			const kept = `SELECT (SELECT count(*) FROM hf_message) + (SELECT count(*) FROM hf_inbox)`
			if n := number(t, dsn, kept); n != 1 {
				t.Errorf("%d rows are kept, want that of the dump", n)
			}
			goOn()
			waittest.Until(t, "it goes on", func() bool { return send(named("Refund")) == nil })
			if got := ask[string](t, dsn, `SELECT string_agg(r.endpoint, ' ' ORDER BY m.seq) FROM hf_message AS m JOIN hf_route AS r USING (route)`); got != "Order Refund" {
				t.Errorf("the database has %s", got)
			}
		})
	}
}
