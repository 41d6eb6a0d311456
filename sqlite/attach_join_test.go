package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// OI-07 in the caller's own transaction: id, effect and response commit with
// the caller's rows, a handler's error undoes the handler alone.
func TestProcessInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		book := func(n int, fail error) holdfast.Handler[*sqlite.Tx] {
			return func(ctx context.Context, tx *sqlite.Tx, _ holdfast.Message) ([]byte, error) {
				if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?)", n); err != nil {
					return nil, err
				}
				if _, err := a.Enqueue(ctx, message("nested")); !errors.Is(err, holdfast.ErrNested) {
					t.Errorf("enqueue in the handler: got %v, want ErrNested", err)
				}
				_, err := tx.Enqueue(ctx, message(""))
				return []byte("booked"), errors.Join(err, fail)
			}
		}
		m := holdfast.Message{ID: "m", Source: "web", Endpoint: "Book", Payload: []byte("1")}
		tx := a.begin(t)
		if r, err := a.In(tx).Process(t.Context(), m, 0, book(1, nil)); err != nil || r.Duplicate {
			t.Errorf("first: %+v, %v", r, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken")
		tx = a.begin(t)
		in := a.In(tx)
		order(t, tx, 100)
		if _, err := in.Process(t.Context(), m, 0, book(2, broken)); !errors.Is(err, broken) {
			t.Errorf("got %v, want the handler's error", err)
		}
		for i, duplicate := range []bool{false, true} {
			r, err := in.Process(t.Context(), m, 0, book(3, nil))
			if err != nil || r.Duplicate != duplicate || string(r.Response) != "booked" {
				t.Errorf("%d: %+v, %v", i, r, err)
			}
		}
		other := m
		other.Payload = []byte("2")
		if _, err := in.Process(t.Context(), other, 0, book(4, nil)); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		rows, err := a.SQL(t.Context(), "SELECT (SELECT group_concat(id) FROM orders), (SELECT count(*) FROM hf_inbox), (SELECT count(*) FROM hf_message)")
		if err != nil {
			t.Fatal(err)
		}
		if rows[0][0] != "3,100" || rows[0][1] != int64(1) || rows[0][2] != int64(1) {
			t.Errorf("orders %v, %v inbox rows, %v messages", rows[0]...)
		}
		if c := a.Counts(); c.Inbox != 1 || c.Pending != 1 {
			t.Errorf("counts %+v", c)
		}
		audit(t, a.DB)
	})
}

// A handler that ends the transaction it was given is told so, and what it
// did by itself is not taken for the message's effect.
func TestHandlerThatCommits(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		m := holdfast.Message{ID: "m", Source: "web", Endpoint: "Book"}
		_, err := a.Inbox().Process(t.Context(), m, func(ctx context.Context, tx *sqlite.Tx, _ holdfast.Message) ([]byte, error) {
			_, err := tx.ExecContext(ctx, "COMMIT")
			return nil, err
		})
		if err == nil {
			t.Error("no error")
		}
		got := a.Inbox().ProcessBatch(t.Context(), []holdfast.Message{{ID: "1", Source: "web", Endpoint: "Book"}, {ID: "2", Source: "web", Endpoint: "Book"}},
			func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
				if m.ID == "2" {
					_, err := tx.ExecContext(ctx, "ROLLBACK")
					return nil, err
				}
				_, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (1)")
				return nil, err
			})
		for i, r := range got {
			if r.Err == nil {
				t.Errorf("message %d of a batch that was undone is taken", i+1)
			}
		}
		if n := a.orders(t); n != 0 {
			t.Errorf("%d orders", n)
		}
		enqueue(t, a.DB, message("after")) // and the connection is usable
	})
}

// A store with a file of its own has no caller's transactions.
func TestInNeedsAttach(t *testing.T) {
	t.Parallel()
	db := fresh(t, sqlite.Options{})
	defer shut(t, db)
	h := handles()["modernc, pool of one"]
	other := h.open(t, t.TempDir()+"/other.db")
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := db.In(tx).Enqueue(t.Context(), message("m")); err == nil {
		t.Error("no error")
	}
}

// OI-01: the caller goes back to a savepoint between two calls through In.
func TestCallersSavepointAroundIn(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		tx := a.begin(t)
		in := a.In(tx)
		m := message("undone")
		m.Destination, m.Endpoint, m.OrderingKey = "new", "Gone", "k"
		statements(t, tx, "SAVEPOINT mine")
		if _, err := in.Enqueue(t.Context(), m); err != nil {
			t.Error(err)
		}
		if _, err := in.Process(t.Context(), holdfast.Message{ID: "1", Source: "web"}, 0, nothing); err != nil {
			t.Error(err)
		}
		statements(t, tx, "ROLLBACK TO mine", "RELEASE mine")
		other := message("other")
		other.Destination, other.Endpoint = "newer", "Other"
		m.ID = "kept"
		for _, m := range []holdfast.Message{other, m} {
			if _, err := in.Enqueue(t.Context(), m); err != nil {
				t.Error(err)
			}
		}
		for _, source := range []string{"net", "web"} {
			if r, err := in.Process(t.Context(), holdfast.Message{ID: "1", Source: source}, 0, nothing); err != nil || r.Duplicate {
				t.Errorf("%s: %+v, %v", source, r, err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		learned(t, a.DB, 2, 2)
		b, err := a.Claim(t.Context(), map[string]int{"new": 10, "newer": 10})
		if err != nil || len(b.Claims) != 2 {
			t.Errorf("claimed %v (%v)", idsOf(b.Claims), err)
		}
		for _, c := range b.Claims {
			if want := map[holdfast.ID]string{"other": "Other", "kept": "Gone"}[c.Message.ID]; c.Message.Endpoint != want {
				t.Errorf("%s has the endpoint %s, want %s", c.Message.ID, c.Message.Endpoint, want)
			}
		}
		rows, err := a.SQL(t.Context(), "SELECT count(DISTINCT s.name) FROM hf_inbox AS x JOIN hf_source AS s ON s.source = x.source")
		if err != nil || rows[0][0] != int64(2) {
			t.Errorf("%v sources have rows (%v)", rows, err)
		}
		audit(t, a.DB)
	})
}

// A handler's panic that the caller recovers from leaves nothing of its
// message in the caller's transaction: else the id would be remembered for an
// effect that is not there.
func TestPanicOfAHandlerInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		tx := a.begin(t)
		in := a.In(tx)
		m := holdfast.Message{ID: "1", Source: "web"}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_, _ = in.Process(t.Context(), m, 0, func(ctx context.Context, tx *sqlite.Tx, _ holdfast.Message) ([]byte, error) {
				statements(t, tx, "INSERT INTO orders VALUES (1)")
				_, err := tx.Enqueue(ctx, message("undone"))
				panic(err)
			})
		}()
		order(t, tx, 2)
		if r, err := in.Process(t.Context(), m, 0, nothing); err != nil || r.Duplicate {
			t.Errorf("again: %+v, %v", r, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if n := a.orders(t); n != 1 {
			t.Errorf("%d orders", n)
		}
		if got := stateOf(t, a.DB, "undone"); got != "nothing" {
			t.Errorf("undone is %s", got)
		}
		learned(t, a.DB, 0, 1)
		audit(t, a.DB)
	})
}

// learned waits until the store knows what a transaction of the caller's has committed.
func learned(t testing.TB, db *sqlite.DB, pending, inbox int64) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("%d are pending and %d in the inbox", pending, inbox), func() bool {
		c := db.Counts()
		return c.Pending == pending && c.Inbox == inbox
	})
}

// A call that meets another's transaction fails, and can be tried again.
func TestInIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, h := range immediate() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.options = strings.Replace(h.options, "&_txlock=immediate", "", 1)
			a := h.shop(t, sqlite.Options{})
			defer a.shut(t)
			other := a.begin(t)
			order(t, other, 1)
			tx := a.begin(t)
			in := a.In(tx)
			if _, err := in.Enqueue(t.Context(), message("m")); err == nil {
				t.Error("no error")
			}
			if _, err := in.Process(t.Context(), holdfast.Message{ID: "m", Source: "web"}, 0, nothing); err == nil {
				t.Error("no error")
			}
			if err := other.Commit(); err != nil {
				t.Error(err)
			}
			if _, err := in.Enqueue(t.Context(), message("m")); err != nil {
				t.Errorf("again: %v", err)
			}
			if _, err := in.Process(t.Context(), holdfast.Message{ID: "m", Source: "web"}, 0, nothing); err != nil {
				t.Errorf("again: %v", err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			learned(t, a.DB, 1, 1)
		})
	}
}

// However a caller ends the transaction behind the store's back, what comes
// after is not committed by itself.
func TestEveryWayToEndATransactionIsSeen(t *testing.T) {
	t.Parallel()
	ends := map[string]func(ctx context.Context, tx *sqlite.Tx, text string) error{
		"exec": func(ctx context.Context, tx *sqlite.Tx, text string) error {
			_, err := tx.ExecContext(ctx, text)
			return err
		},
		"query": func(ctx context.Context, tx *sqlite.Tx, text string) error {
			rows, err := tx.QueryContext(ctx, text)
			if err != nil {
				return err
			}
			for rows.Next() { // a driver may run the statement only now
			}
			return errors.Join(rows.Err(), rows.Close())
		},
		"row": func(ctx context.Context, tx *sqlite.Tx, text string) error {
			var none any
			if err := tx.QueryRowContext(ctx, text).Scan(&none); !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			return nil
		},
	}
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		a := h.shop(t, sqlite.Options{})
		defer a.shut(t)
		for name, end := range ends {
			for _, text := range []string{"COMMIT", "ROLLBACK"} {
				err := a.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
					if _, err := tx.Enqueue(ctx, message("")); err != nil {
						t.Error(err)
					}
					if err := end(ctx, tx, text); err != nil {
						t.Errorf("%s by %s: %v", text, name, err)
					}
					if _, err := tx.Enqueue(ctx, message("late")); err == nil {
						t.Errorf("%s by %s: enqueued after it", text, name)
					}
					return nil
				})
				if err == nil {
					t.Errorf("%s by %s: Do does not tell", text, name)
				}
			}
		}
		if got := stateOf(t, a.DB, "late"); got != "nothing" {
			t.Errorf("what came after the end is %s", got)
		}
	})
}
