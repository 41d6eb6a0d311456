package postgres_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// terminate ends the server's side of a transaction.
func (s *shop) terminate(t testing.TB, tx pgx.Tx) {
	t.Helper()
	if n := s.number(t, "SELECT count(pg_terminate_backend($1))", tx.Conn().PgConn().PID()); n != 1 {
		t.Errorf("%d connections terminated", n)
	}
}

// OI-01: the caller's rows and the messages are one commit, or none.
func TestDoIsOneCommit(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	refused := errors.New("refused")
	for _, c := range []struct {
		id   holdfast.ID
		err  error
		rows int64
	}{{"yes", nil, 1}, {"no", refused, 1}} {
		err := s.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES (DEFAULT + $1)", 1); err == nil {
				t.Error("a wrong statement is taken")
			}
			return errors.New("left")
		})
		if err == nil || err.Error() != "left" {
			t.Errorf("got %v", err)
		}
		err = s.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO orders SELECT count(*) FROM orders"); err != nil {
				return err
			}
			r, err := tx.Enqueue(ctx, order(c.id), order(c.id))
			if err != nil || !r[1].Duplicate {
				t.Errorf("enqueue in a transaction: %v, %v", r, err)
			}
			return c.err
		})
		if err != c.err { //nolint:errorlint // passed on as it is
			t.Errorf("%s: got %v, want %v", c.id, err, c.err)
		}
		s.stand(t, c.rows, c.rows, 0)
		if c := s.Counts(); c.Pending != 1 { // known at once
			t.Errorf("counts %+v", c)
		}
	}
}

// Whatever ends a transaction early, Do does not report a success, nothing of
// it stands, and the connection is usable.
//
// Outbox case 12.
func TestTransactionsThatDoNotCommit(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	exec := func(list ...string) func(ctx context.Context, tx *postgres.Tx) error {
		return func(ctx context.Context, tx *postgres.Tx) error {
			for _, q := range list {
				_, _ = tx.Exec(ctx, q) // and does not tell
			}
			return nil
		}
	}
	for name, end := range map[string]func(ctx context.Context, tx *postgres.Tx) error{
		"a statement that fails":   exec("SELECT 1/0"),
		"ROLLBACK by SQL":          exec("ROLLBACK"),
		"ROLLBACK, and a new one":  exec("ROLLBACK", "BEGIN"),
		"Rollback":                 func(ctx context.Context, tx *postgres.Tx) error { _ = tx.Rollback(ctx); return nil },
		"a constraint at the end":  exec("CREATE TABLE IF NOT EXISTS late (n integer UNIQUE DEFERRABLE INITIALLY DEFERRED)", "INSERT INTO late VALUES (1), (1)"),
		"its connection is cut":    func(_ context.Context, tx *postgres.Tx) error { s.terminate(t, tx); return nil },
		"its connection is closed": func(ctx context.Context, tx *postgres.Tx) error { return tx.Conn().Close(ctx) },
		"a statement that is left": func(ctx context.Context, tx *postgres.Tx) error {
			short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			_, _ = tx.Exec(short, "SELECT pg_sleep(60)")
			return nil
		},
		"rows that are left open": func(ctx context.Context, tx *postgres.Tx) error {
			_, err := tx.Query(ctx, "SELECT generate_series(1, 100000)")
			return err
		},
	} {
		err := s.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES (1)"); err != nil {
				return err
			}
			if _, err := tx.Enqueue(ctx, order("")); err != nil {
				return err
			}
			return end(ctx, tx)
		})
		if err == nil {
			t.Errorf("%s: Do reports a success", name)
		}
		_, err = s.Inbox().Process(t.Context(), received("m"), func(ctx context.Context, tx *postgres.Tx, _ holdfast.Message) ([]byte, error) {
			if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES (1)"); err != nil {
				return nil, err
			}
			return nil, end(ctx, tx)
		})
		if err == nil {
			t.Errorf("%s: Process reports a success", name)
		}
		s.stand(t, 0, 0, 0)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = s.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
			panic(exec("INSERT INTO orders VALUES (1)")(ctx, tx))
		})
	}()
	exits := make(chan struct{})
	go func() {
		defer close(exits)
		_ = s.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
			_ = exec("INSERT INTO orders VALUES (1)")(ctx, tx)
			runtime.Goexit()
			return nil
		})
	}()
	<-exits
	s.stand(t, 0, 0, 0)
	if c := s.Counts(); c.Pending != 0 || c.Inbox != 0 {
		t.Errorf("counts %+v", c)
	}
	var kept *postgres.Tx
	for range 20 { // each of the connections
		if err := s.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
			kept = tx
			_, err := tx.Exec(ctx, "SELECT count(*) FROM orders")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := kept.Exec(t.Context(), "INSERT INTO orders VALUES (1)"); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("a transaction that is kept: %v", err)
	}
	if _, err := kept.Enqueue(t.Context(), order("")); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("a transaction that is kept: %v", err)
	}
	s.stand(t, 0, 0, 0)
}

// A client that is gone without a word does not keep what it has locked until
// its statement ends.
func TestStatementOfAClientThatIsGone(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	began := time.Now()
	if err := s.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES (1)"); err != nil {
			return err
		}
		wire := tx.Conn().PgConn().Conn()
		time.AfterFunc(100*time.Millisecond, func() { _ = wire.Close() })
		_, err := tx.Exec(ctx, "SELECT pg_sleep(120)")
		return err
	}); err == nil {
		t.Error("no error")
	}
	if err := s.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO orders VALUES (1)")
		return err
	}); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the row was locked for %s", took)
	}
}

// What stands already when the function returns is told, though it cannot be undone.
func TestTransactionThatCommitsByItself(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	for _, list := range [][]string{{"COMMIT"}, {"COMMIT", "BEGIN"}, {"COMMIT AND CHAIN"}} {
		err := s.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
			if err := tx.Commit(ctx); err == nil {
				t.Error("Commit commits")
			}
			if _, err := tx.Enqueue(ctx, order("")); err != nil {
				return err
			}
			for _, q := range list {
				if _, err := tx.Exec(ctx, q); err != nil {
					return err
				}
			}
			if len(list) == 1 && list[0] == "COMMIT" {
				if _, err := tx.Enqueue(ctx, order("late")); err == nil {
					t.Error("enqueued after the end")
				}
			}
			return nil
		})
		if !mentions(err, "ended by a statement") {
			t.Errorf("%v: %v", list, err)
		}
	}
	if n := s.number(t, "SELECT count(*) FROM hf_message WHERE id = '\\x02' || convert_to('late', 'UTF8')"); n != 0 {
		t.Error("what came after the end stands by itself")
	}
}

// Savepoints are the function's own: what is undone to one does not count.
func TestSavepointsInDo(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	if err := s.Do(t.Context(), func(ctx context.Context, tx *postgres.Tx) error {
		inner, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Enqueue(ctx, order("undone")); err != nil {
			return err
		}
		if _, err := tx.Process(ctx, received("undone"), 0, func(context.Context, *postgres.Tx, holdfast.Message) ([]byte, error) { return nil, nil }); err != nil {
			return err
		}
		if _, err := inner.Exec(ctx, "SELECT 1/0"); err == nil {
			t.Error("1/0 has a value")
		}
		if err := inner.Rollback(ctx); err != nil {
			return err
		}
		if inner, err = tx.Begin(ctx); err != nil {
			return err
		}
		if _, err := tx.Enqueue(ctx, order("kept")); err != nil {
			return err
		}
		return inner.Commit(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	s.stand(t, 0, 1, 0)
	if c := s.Counts(); c.Pending != 1 || c.Inbox != 0 {
		t.Errorf("counts %+v", c)
	}
}

// OI-07: two nodes get the same message at once, many times.
func TestTwoNodesGetOneMessage(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	nodes := []*postgres.DB{s.DB, opened(t, s.dsn, postgres.Options{}), opened(t, s.dsn, postgres.Options{Connections: 2})}
	var runs, fresh atomic.Int32
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			r, err := nodes[i%3].Inbox().Process(t.Context(), received("m"), func(ctx context.Context, tx *postgres.Tx, _ holdfast.Message) ([]byte, error) {
				runs.Add(1)
				_, err := tx.Exec(ctx, "INSERT INTO orders VALUES (1)")
				time.Sleep(50 * time.Millisecond)
				return []byte("booked"), err
			})
			if err != nil || string(r.Response) != "booked" {
				t.Errorf("%+v, %v", r, err)
			}
			if !r.Duplicate {
				fresh.Add(1)
			}
		})
	}
	all.Wait()
	if runs.Load() != 1 || fresh.Load() != 1 {
		t.Errorf("%d runs, %d of them said to be new", runs.Load(), fresh.Load())
	}
	s.stand(t, 1, 0, 1)
}

// A node that dies with a handler at work leaves nothing, and another node
// that waits for the same message then runs it.
func TestHandlerWhoseNodeDies(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	other := opened(t, s.dsn, postgres.Options{})
	at := make(chan *postgres.Tx)
	first := make(chan error, 1)
	dead := make(chan struct{})
	handler := func(ctx context.Context, tx *postgres.Tx, _ holdfast.Message) ([]byte, error) {
		_, err := tx.Exec(ctx, "INSERT INTO orders VALUES (1)")
		return []byte("booked"), err
	}
	go func() {
		_, err := s.Inbox().Process(t.Context(), received("m"), func(ctx context.Context, tx *postgres.Tx, m holdfast.Message) ([]byte, error) {
			response, err := handler(ctx, tx, m)
			at <- tx
			<-dead
			return response, err
		})
		first <- err
	}()
	tx := <-at
	second := make(chan holdfast.Result, 1)
	go func() {
		r, err := other.Inbox().Process(t.Context(), received("m"), handler)
		second <- holdfast.Result{Receipt: r, Err: err}
	}()
	waittest.Until(t, "the second waits for a lock", func() bool { return s.number(t, "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0 })
	s.terminate(t, tx)
	r := <-second
	if r.Err != nil || r.Receipt.Duplicate || string(r.Receipt.Response) != "booked" {
		t.Errorf("the one that waited: %+v", r)
	}
	close(dead)
	if err := <-first; err == nil {
		t.Error("the first says that it succeeded")
	}
	s.stand(t, 1, 0, 1)
}

// A handler that takes its time holds up those that want the same message, and
// nobody else, on this node and on others.
//
// Outbox case 13.
func TestSlowHandlerHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{Connections: 2})
	other := opened(t, s.dsn, postgres.Options{Connections: 2})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	began, end := make(chan struct{}), make(chan struct{})
	keyed := order("keyed")
	keyed.OrderingKey = "k"
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := s.Inbox().Process(ctx, received("slow"), func(ctx context.Context, tx *postgres.Tx, _ holdfast.Message) ([]byte, error) {
			_, err := tx.Enqueue(ctx, order("by-the-handler"), keyed)
			close(began)
			<-end
			return nil, err
		}); err != nil {
			t.Error(err)
		}
	})
	<-began
	for range 10 { // more than there are connections
		all.Go(func() {
			if r, err := s.Inbox().Process(ctx, received("slow"), nil); err != nil || !r.Duplicate {
				t.Errorf("a repeat: %+v, %v", r, err)
			}
		})
	}
	for i, db := range []*postgres.DB{s.DB, other} {
		id := holdfast.ID([]string{"1", "2"}[i])
		k := order(id)
		k.OrderingKey = "k"
		if _, err := db.Enqueue(ctx, k); err != nil {
			t.Error(err)
		}
		if b, err := db.Claim(ctx, map[string]int{"stock": 10}); err != nil || len(b.Claims) != 1-i {
			t.Errorf("node %d: %d claims, %v", i, len(b.Claims), err)
		}
		if _, err := db.Keep(ctx, time.Hour, received("k"+id)); err != nil {
			t.Error(err)
		}
		if _, _, err := db.SweepInbox(ctx, time.Hour); err != nil {
			t.Error(err)
		}
		if _, err := db.Inbox().Process(ctx, received(id), func(ctx context.Context, tx *postgres.Tx, _ holdfast.Message) ([]byte, error) {
			_, err := tx.Enqueue(ctx, order("p"+id))
			return nil, err
		}); err != nil {
			t.Error(err)
		}
	}
	close(end)
	all.Wait()
}

// A handler that the database gives up for the sake of another runs again.
func TestDeadlockOfHandlersRunsOneAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	statements(t, s.dsn, "INSERT INTO orders VALUES (1), (2)")
	var runs atomic.Int32
	var met, all sync.WaitGroup
	met.Add(2)
	ended := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	for at, list := range [][]int{{1, 2}, {2, 1}} {
		all.Go(func() {
			defer close(ended[at])
			first := true
			_, err := s.Inbox().Process(t.Context(), received(holdfast.ID([]string{"", "a", "b"}[list[0]])), func(ctx context.Context, tx *postgres.Tx, _ holdfast.Message) ([]byte, error) {
				if runs.Add(1); !first {
					<-ended[1-at] // else it may take the row before the other wakes up, and they meet again
				}
				for i, n := range list {
					if _, err := tx.Exec(ctx, "UPDATE orders SET approved = true WHERE id = $1", n); err != nil {
						return nil, err
					}
					if i == 0 && first {
						first = false
						met.Done()
						met.Wait()
					}
				}
				return nil, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if runs.Load() != 3 {
		t.Errorf("%d runs, want 3", runs.Load())
	}
}

// Outbox case 28: what a caller's transaction has enqueued is delivered soon
// after its commit, without a further call.
func TestCommitIsHeardOf(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	got := make(chan holdfast.Message, 10)
	ctx, stop := context.WithCancel(t.Context())
	d := &holdfast.Dispatcher{Store: s.DB, Routes: map[string]holdfast.Route{"stock": {
		Deliverer: holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			got <- m
			return holdfast.Receipt{ID: m.ID}, nil
		}),
	}}}
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	wait := func(id holdfast.ID, most time.Duration) {
		t.Helper()
		began := time.Now()
		if m := <-got; m.ID != id {
			t.Errorf("got %s, want %s", m.ID, id)
		}
		took := time.Since(began)
		t.Logf("%s: %s", id, took)
		if took > most {
			t.Errorf("%s took %s", id, took)
		}
	}
	enqueue := func(id holdfast.ID) {
		t.Helper()
		if err := s.Do(ctx, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := tx.Enqueue(ctx, order(id))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	enqueue("warm")
	wait("warm", time.Minute)
	enqueue("do")
	wait("do", 700*time.Millisecond)
	tx := s.beginPgx(t, begun{}, pgx.QueryExecModeCacheStatement)
	keyed := order("in")
	keyed.OrderingKey = "k"
	if _, err := tx.Enqueue(ctx, keyed); err != nil {
		t.Fatal(err)
	}
	if err := tx.commit(); err != nil {
		t.Fatal(err)
	}
	wait("in", 5*time.Second)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
