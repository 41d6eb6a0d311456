package sqlite_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

var cycles = flag.Int("cycles", 8, "how many times TestKillAttached kills one of its two processes")

// attachedChild is a program that uses the outbox and the inbox in its own
// database, until it is killed: each order and its message are one commit, by
// all three ways; the handler's effect and its id are another. It says what it
// was told is durable.
func attachedChild(driver, path, name string) {
	h := handles()[driver]
	handle, err := sql.Open(h.driver, "file:"+path+h.options)
	must(err)
	handle.SetMaxOpenConns(h.pool)
	db, err := sqlite.Attach(context.Background(), handle, sqlite.Options{Source: "shop"})
	must(err)
	in := db.Inbox()
	must(in.Handle("Book", func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
		_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", string(m.ID))
		return nil, err
	}))
	d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"books": {
		Retry: holdfast.RetryPolicy{First: 10 * time.Millisecond, Jitter: -1, Attempts: holdfast.Unlimited},
		Deliverer: holdfast.DelivererFunc(func(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			return in.Receive(ctx, m)
		}),
	}}}
	go func() { must(d.Run(context.Background())) }()
	say("ready")
	for i := 0; ; i++ {
		id := holdfast.ID(fmt.Sprintf("%s-%d-%d", name, os.Getpid(), i))
		must(sellOne(db, handle, i, id))
		say(id)
	}
}

// sellOne writes an order and its message in one transaction.
func sellOne(db *sqlite.DB, handle *sql.DB, i int, id holdfast.ID) error {
	ctx := context.Background()
	m := holdfast.Message{ID: id, Destination: "books", Endpoint: "Book", Payload: []byte(`{}`)}
	const order = "INSERT INTO orders VALUES (?)"
	if i%2 == 0 {
		return db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
			if _, err := tx.ExecContext(ctx, order, string(id)); err != nil {
				return err
			}
			_, err := tx.Enqueue(ctx, m)
			return err
		})
	}
	for {
		tx, err := handle.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if _, err = tx.ExecContext(ctx, order, string(id)); err == nil {
			_, err = db.In(tx).Enqueue(ctx, m)
		}
		if err == nil {
			err = tx.Commit()
		}
		if err == nil {
			return nil
		}
		_ = tx.Rollback()
		if !strings.Contains(err.Error(), "locked") { // the other process wrote: as with any transaction
			return err
		}
	}
}

// OI-01 with two processes on one file, killed without warning: an order and
// its message stand together or not at all, every acknowledged one is there,
// and each takes effect once.
func TestKillAttached(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "the step chaos kills more often")
	for name, h := range handles() {
		if h.pool == 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "shop.db")
			a := h.attach(t, path, sqlite.Options{})
			for _, table := range []string{"orders", "effects"} {
				if _, err := a.handle.ExecContext(t.Context(), "CREATE TABLE "+table+" (id TEXT PRIMARY KEY)"); err != nil {
					t.Fatal(err)
				}
			}
			a.shut(t)
			acked := killInTurn(t, name, path)
			checkBooks(t, h, path, acked)
		})
	}
}

// killInTurn runs two children and kills one after the other.
func killInTurn(t *testing.T, driver, path string) (acked []string) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	begin := func(n int) (end func()) {
		c, out := start(t, "attached", driver, path, fmt.Sprint("p", n))
		if got := out.line(t); got != "ready" {
			t.Fatalf("the child says %q", got)
		}
		wg.Go(func() {
			lines := out.all()
			mu.Lock()
			defer mu.Unlock()
			for _, l := range lines {
				if strings.HasPrefix(l, "p") {
					acked = append(acked, l)
				}
			}
		})
		return func() { kill(t, c) }
	}
	ends := []func(){begin(0), begin(1)}
	for i := range *cycles {
		time.Sleep(time.Duration(100+rand.IntN(300)) * time.Millisecond)
		ends[i%2]()
		ends[i%2] = begin(i % 2)
	}
	for _, end := range ends {
		end()
	}
	wg.Wait()
	return acked
}

func checkBooks(t *testing.T, h handle, path string, acked []string) {
	t.Helper()
	a := h.attach(t, path, sqlite.Options{Source: "shop"})
	defer a.shut(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	in := a.Inbox()
	d := &holdfast.Dispatcher{Store: a.DB, Routes: map[string]holdfast.Route{"books": {
		Deliverer: holdfast.DelivererFunc(func(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			return in.Process(ctx, m, func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
				_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (?)", string(m.ID))
				return nil, err
			})
		}),
	}}}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	waittest.Until(t, "nothing is pending", func() bool { return a.Counts().Pending == 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	rows, err := a.SQL(t.Context(), `SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM effects), (SELECT count(*) FROM hf_message WHERE state = 2),
		(SELECT count(*) FROM hf_message), (SELECT count(*) FROM orders WHERE id NOT IN (SELECT id FROM effects)), (SELECT count(*) FROM orders WHERE id NOT IN (SELECT id FROM hf_message))`)
	if err != nil {
		t.Fatal(err)
	}
	n := func(i int) int64 { return rows[0][i].(int64) }
	if n(0) == 0 || n(1) != n(0) || n(2) != n(0) || n(3) != n(0) || n(4) != 0 || n(5) != 0 {
		t.Errorf("%d orders, %d effects, %d messages delivered of %d, %d orders without effect, %d without message", n(0), n(1), n(2), n(3), n(4), n(5))
	}
	known := map[string]bool{}
	ids, err := a.SQL(t.Context(), "SELECT id FROM orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range ids {
		known[r[0].(string)] = true
	}
	lost := 0
	for _, id := range acked {
		if !known[id] {
			lost++
		}
	}
	if lost > 0 || len(acked) == 0 {
		t.Errorf("%d of %d acknowledged orders are lost", lost, len(acked))
	}
	t.Logf("%d acknowledged, %d committed, %d effects, lost %d", len(acked), n(0), n(1), lost)
	audit(t, a.DB)
}
