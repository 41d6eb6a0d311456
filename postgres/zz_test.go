package postgres_test

import (
	"context"
	"fmt"
	"github.com/jackc/pgx/v5"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
)

func TestZZ(t *testing.T) {
	srv := pgtest.Start(t, pgtest.Options{NoSync: true, Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "4GB", "shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track_planning": "on"}})
	dsn := srv.Database(t)

	if err := sql(t.Context(), dsn, "create extension pg_stat_statements"); err != nil {
		t.Fatal(err)
	}
	defer stat(t, dsn)
	db, err := postgres.Open(t.Context(), dsn, postgres.Options{Source: "s", Node: "n"}.Relaxed())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	payload := make([]byte, 512)
	const n = 60000
	var wg sync.WaitGroup
	began := time.Now()
	for g := range 64 {
		wg.Go(func() {
			for i := range n / 64 {
				if _, err := db.Enqueue(context.Background(), holdfast.Message{Destination: "a", Endpoint: "E", Payload: payload}); err != nil {
					t.Error(g, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("enqueue/s", float64(n)/time.Since(began).Seconds(), db.Counts())
	var got atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	d := holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: holdfast.DelivererFunc(func(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		if got.Add(1) == n/64*64 {
			cancel()
		}
		return holdfast.Receipt{}, nil
	})}}}
	began = time.Now()
	if err := d.Run(ctx); err != nil {
		t.Error(err)
	}
	fmt.Println("drain/s", float64(n)/time.Since(began).Seconds(), db.Counts())
	exec.Command("sh", "-c", "cp $(find /tmp /dev/shm -name 'postgres.log' -newermt '1 minute ago' | head -1) /tmp/hf/zz/pg.log; find /tmp /dev/shm -name '*.log' -newermt '1 minute ago' > /tmp/hf/zz/found").Run()
	f, err := db.Audit(context.Background())
	fmt.Println(f, err)
}

func stat(t *testing.T, dsn string) {
	c, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := c.Query(context.Background(), "select calls, total_exec_time::int, total_plan_time::int, rows, left(regexp_replace(query, '\\s+', ' ', 'g'), 90) from pg_stat_statements order by total_exec_time desc limit 15")
	for rows.Next() {
		v, _ := rows.Values()
		fmt.Println(v...)
	}
}
func sql(ctx context.Context, dsn string, statements ...string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(ctx) //nolint:errcheck // it has done its work
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}
