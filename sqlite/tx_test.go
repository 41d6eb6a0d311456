package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// slow makes a statement that writes and takes so long that it is interrupted.
const slow = `INSERT INTO business WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`

func withBusiness(t testing.TB) *sqlite.DB {
	t.Helper()
	return business(t, sqlite.Options{})
}

func business(t testing.TB, o sqlite.Options) *sqlite.DB {
	t.Helper()
	db := fresh(t, o)
	if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE business (n)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return db
}

func businessRows(t testing.TB, db *sqlite.DB) int64 {
	t.Helper()
	rows, err := db.SQL(t.Context(), "SELECT count(*) FROM business")
	if err != nil {
		t.Fatal(err)
	}
	return rows[0][0].(int64)
}

// OI-01: the caller's rows and the messages are one commit, or none.
func TestDoIsOneCommit(t *testing.T) {
	t.Parallel()
	db := withBusiness(t)
	defer shut(t, db)
	refused := errors.New("refused")
	for _, c := range []struct {
		id   holdfast.ID
		err  error
		want string
		rows int64
	}{{"yes", nil, "pending", 1}, {"no", refused, "nothing", 1}} {
		err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO business VALUES (?)", 1); err != nil {
				return err
			}
			receipts, err := tx.Enqueue(ctx, message(c.id), message(c.id))
			if err != nil || !receipts[1].Duplicate {
				t.Errorf("enqueue in a transaction: %v, %v", receipts, err)
			}
			var n int64
			if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM business").Scan(&n); err != nil || n == 0 {
				t.Errorf("the transaction does not see its own rows: %d, %v", n, err)
			}
			return c.err
		})
		if err != c.err { //nolint:errorlint // passed on as it is
			t.Errorf("%s: got %v, want %v", c.id, err, c.err)
		}
		if got := stateOf(t, db, c.id); got != c.want {
			t.Errorf("%s is %s, want %s", c.id, got, c.want)
		}
		if got := businessRows(t, db); got != c.rows {
			t.Errorf("%s: %d rows, want %d", c.id, got, c.rows)
		}
	}
	audit(t, db)
}

// An interrupted statement undoes the transaction behind the function's back.
// What the function does next must not stand by itself, and Do must not
// report a success, whatever the function makes of it.
//
// Outbox case 12.
func TestInterruptedStatementUndoesEverything(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(ctx context.Context, tx *sqlite.Tx) error{
		"returns nil": func(context.Context, *sqlite.Tx) error { return nil },
		"enqueues": func(ctx context.Context, tx *sqlite.Tx) error {
			_, err := tx.Enqueue(ctx, message("alone"))
			return err
		},
		"executes": func(ctx context.Context, tx *sqlite.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO business VALUES (2)")
			return err
		},
		"queries a write": func(ctx context.Context, tx *sqlite.Tx) error {
			rows, err := tx.QueryContext(ctx, "INSERT INTO business VALUES (3) RETURNING n")
			if err == nil {
				_ = rows.Close()
				err = rows.Err()
			}
			return err
		},
		"queries a row that it writes": func(ctx context.Context, tx *sqlite.Tx) error {
			var n int
			return tx.QueryRowContext(ctx, "INSERT INTO business VALUES (4) RETURNING n").Scan(&n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &tap{}
			db := business(t, sqlite.Options{}.With(p.wrap))
			defer shut(t, db)
			err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
				if _, err := tx.Enqueue(ctx, message("first")); err != nil {
					return err
				}
				short, cancel := context.WithCancel(ctx)
				defer cancel()
				p.set(func(sql string) error {
					if sql == slow { // one that does not begin undoes nothing
						time.AfterFunc(100*time.Millisecond, cancel)
					}
					return nil
				}, nil)
				if _, err := tx.ExecContext(short, slow); err == nil {
					t.Error("the endless statement ended")
				}
				if err := next(ctx, tx); err == nil && name != "returns nil" {
					t.Error("a statement ran after the transaction was undone")
				}
				return nil
			})
			if err == nil {
				t.Error("Do reports a success")
			}
			if n := businessRows(t, db); n != 0 {
				t.Errorf("%d rows stand", n)
			}
			for _, id := range []holdfast.ID{"first", "alone"} {
				if s := stateOf(t, db, id); s != "nothing" {
					t.Errorf("%s is %s", id, s)
				}
			}
			enqueue(t, db, message("later"))
			audit(t, db)
		})
	}
}

func TestSQLThatEndsTheTransaction(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"COMMIT", "ROLLBACK"} {
		db := withBusiness(t)
		err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			if _, err := tx.ExecContext(ctx, text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if _, err := tx.Enqueue(ctx, message("alone")); err == nil {
				t.Errorf("%s: an enqueue after the end was accepted", text)
			}
			return nil
		})
		if err == nil {
			t.Errorf("%s: Do reports a success", text)
		}
		if s := stateOf(t, db, "alone"); s != "nothing" {
			t.Errorf("%s: the message is %s", text, s)
		}
		enqueue(t, db, message("later"))
		audit(t, db)
		shut(t, db)
	}
}

func TestContextThatEndsInDoUndoesEverything(t *testing.T) {
	t.Parallel()
	db := withBusiness(t)
	defer shut(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
		if _, err := tx.Enqueue(ctx, message("m")); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, "SELECT seq FROM hf_message, (VALUES (1), (2), (3))")
		if err != nil || !rows.Next() { // left open: database/sql closes it beside us
			t.Errorf("query: %v", err)
		}
		cancel()
		for range 50 {
			if _, err := tx.Enqueue(context.WithoutCancel(ctx), holdfast.Message{Destination: "a", Endpoint: "E"}); err != nil {
				t.Error(err)
			}
		}
		return rows.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	if got := db.Counts().Pending; got != 0 {
		t.Errorf("%d messages", got)
	}
	enqueue(t, db, message("later"))
	audit(t, db)
}

func TestPanicInDo(t *testing.T) {
	t.Parallel()
	db := withBusiness(t)
	defer shut(t, db)
	begin := func(ctx context.Context, tx *sqlite.Tx) {
		if _, err := tx.Enqueue(ctx, message("m")); err != nil {
			t.Error(err)
		}
	}
	func() {
		defer func() {
			if r := recover(); r != "broken" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			begin(ctx, tx)
			panic("broken")
		})
	}()
	var gone sync.WaitGroup
	gone.Go(func() {
		_ = db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			begin(ctx, tx)
			runtime.Goexit()
			return nil
		})
	})
	gone.Wait()
	if s := stateOf(t, db, "m"); s != "nothing" {
		t.Errorf("the message is %s", s)
	}
	enqueue(t, db, message("m"))
	audit(t, db)
}

func TestTxAfterItsEnd(t *testing.T) {
	t.Parallel()
	db := withBusiness(t)
	defer shut(t, db)
	var escaped *sqlite.Tx
	if err := db.Do(t.Context(), func(_ context.Context, tx *sqlite.Tx) error {
		escaped = tx
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, enqueueErr := escaped.Enqueue(ctx, message("m"))
	_, execErr := escaped.ExecContext(ctx, "INSERT INTO business VALUES (1)")
	_, queryErr := escaped.QueryContext(ctx, "SELECT 1")
	for _, err := range []error{enqueueErr, execErr, queryErr} {
		if !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("got %v, want ErrTxDone", err)
		}
	}
	var n int
	if err := escaped.QueryRowContext(ctx, "SELECT 1").Scan(&n); err == nil {
		t.Error("a query ran")
	}
	if s := stateOf(t, db, "m"); s != "nothing" {
		t.Errorf("the message is %s", s)
	}
}

// A fault inside Enqueue may have left one message of two: the transaction
// cannot commit any more, even if the function swallows the fault.
func TestHalfAnEnqueueIsNotCommitted(t *testing.T) {
	t.Parallel()
	p := &tap{}
	db := fresh(t, sqlite.Options{}.With(p.wrap))
	defer shut(t, db)
	err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		p.set(nth(2, errors.New("injected"), "INSERT INTO hf_body"), nil)
		if _, err := tx.Enqueue(ctx, message("1"), message("2")); err == nil {
			t.Error("no error")
		}
		p.set(nil, nil)
		return nil
	})
	if err == nil {
		t.Error("Do reports a success")
	}
	if s := stateOf(t, db, "1"); s != "nothing" {
		t.Errorf("the first message is %s", s)
	}
	// A conflict is no fault: the function may go on.
	enqueue(t, db, message("taken"))
	if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		other := message("taken")
		other.Payload = []byte("other")
		if _, err := tx.Enqueue(ctx, message("3"), other); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("got %v, want a conflict", err)
		}
		_, err := tx.Enqueue(ctx, message("4"))
		return err
	}); err != nil {
		t.Error(err)
	}
	if s3, s4 := stateOf(t, db, "3"), stateOf(t, db, "4"); s3 != "nothing" || s4 != "pending" {
		t.Errorf("3 is %s, 4 is %s", s3, s4)
	}
}

// A context that escaped the mark waits for itself: the wait is bounded, and
// the error says what happened.
func TestWaitForATurnIsBounded(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := virtual()
		o.TurnWait = time.Minute
		db := fresh(t, o)
		defer shut(t, db)
		began := time.Now()
		err := db.Do(t.Context(), func(ctx context.Context, _ *sqlite.Tx) error {
			if _, err := db.Enqueue(ctx, message("marked")); !errors.Is(err, holdfast.ErrNested) || time.Since(began) > 0 {
				t.Errorf("marked: got %v after %s, want ErrNested at once", err, time.Since(began))
			}
			_, err := db.Enqueue(context.Background(), message("escaped"))
			return err
		})
		if !errors.Is(err, holdfast.ErrNested) {
			t.Errorf("got %v, want ErrNested", err)
		}
		if waited := time.Since(began); waited < time.Minute || waited > 2*time.Minute {
			t.Errorf("waited %s", waited)
		}
		if s := stateOf(t, db, "escaped"); s != "nothing" {
			t.Errorf("the message is %s", s)
		}
	})
}

// Many short turns hold nobody up for longer than they last, and are no
// reason to give up.
func TestManyShortTurnsAreNoHangingTransaction(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := virtual()
		o.TurnWait = 10 * time.Second
		db := fresh(t, o)
		defer shut(t, db)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := db.Do(t.Context(), func(context.Context, *sqlite.Tx) error {
					time.Sleep(7 * time.Second)
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// A call that waits behind somebody's transaction can be given up; one that
// was begun is answered.
func TestCancelledCallsWithdraw(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := fresh(t, virtual())
		defer shut(t, db)
		hold, held := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
				close(held)
				<-hold
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
		<-held
		ctx, cancel := context.WithCancel(t.Context())
		for _, call := range []func() error{
			func() error { _, err := db.Enqueue(ctx, message("withdrawn")); return err },
			func() error { _, err := db.Claim(ctx, map[string]int{"a": 1}); return err },
			func() error {
				return db.Do(ctx, func(context.Context, *sqlite.Tx) error { t.Error("it ran"); return nil })
			},
			func() error {
				return db.Do(ctx, func(context.Context, *sqlite.Tx) error { t.Error("it ran"); return nil })
			},
		} {
			all.Go(func() {
				if err := call(); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want Canceled", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(hold)
		all.Wait()
		if s := stateOf(t, db, "withdrawn"); s != "nothing" {
			t.Errorf("the message is %s", s)
		}
		audit(t, db)
	})
}

// The turn of one caller does not keep the next from giving up, though both
// were taken from the queue together.
func TestSecondOfTwoTurnsCanBeGivenUp(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := fresh(t, virtual())
		defer shut(t, db)
		hold := make(chan struct{})
		errs := make(chan error, 2)
		ctx, cancel := context.WithCancel(t.Context())
		first := func(context.Context, *sqlite.Tx) error { <-hold; return nil }
		if err := db.Do(t.Context(), func(context.Context, *sqlite.Tx) error {
			for range 2 { // they wait together
				go func() { errs <- db.Do(ctx, first) }()
			}
			synctest.Wait()
			return nil
		}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case err := <-errs:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want Canceled", err)
			}
		default:
			t.Error("the second still waits")
		}
		close(hold)
		if err := <-errs; !errors.Is(err, context.Canceled) { // its own ctx ended while it ran
			t.Errorf("the first: %v", err)
		}
	})
}

// Close answers everybody who waits, and loses nothing that it acknowledged.
func TestCloseWhileCallsWait(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := fresh(t, virtual())
		hold, held := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
				close(held)
				<-hold
				_, err := tx.Enqueue(ctx, message("do"))
				return err
			}); err != nil {
				t.Error(err)
			}
		})
		<-held
		var accepted, refused int
		var mu sync.Mutex
		for range 20 {
			all.Go(func() {
				_, err := db.Enqueue(t.Context(), holdfast.Message{Destination: "a", Endpoint: "E"})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					accepted++
				case errors.Is(err, holdfast.ErrClosed):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		all.Go(func() { shut(t, db) })
		synctest.Wait()
		if _, err := db.Enqueue(t.Context(), message("late")); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("late: got %v, want ErrClosed", err)
		}
		close(hold)
		all.Wait()
		if accepted != 20 || refused != 0 {
			t.Errorf("%d accepted, %d refused: who waited before Close is served", accepted, refused)
		}
	})
}
