package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// statements runs SQL of the caller's.
func statements(t testing.TB, tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, texts ...string,
) {
	t.Helper()
	for _, text := range texts {
		if _, err := tx.ExecContext(t.Context(), text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A handler's failure undoes its message's keys, and another process may be
// given them: what it writes under them must be learned all the same.
func TestKeysOfAnUndonePartAreLearnedFromOthers(t *testing.T) {
	t.Parallel()
	inPairs(t, func(t *testing.T, owner, other *app) {
		t.Helper()
		defer other.shut(t)
		defer owner.shut(t)
		enqueue(t, owner.DB, message("first"))
		if c := claims(t, owner, 10); len(c) != 1 {
			t.Fatalf("claimed %v", idsOf(c))
		}
		got := owner.Inbox().ProcessBatch(t.Context(), []holdfast.Message{{ID: "a", Source: "web"}, {ID: "b", Source: "web"}},
			func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
				if m.ID == "a" {
					return nil, nil
				}
				_, err := tx.Enqueue(ctx, message("undone"), message("undone too"))
				return nil, errors.Join(err, errors.New("broken"))
			})
		if got[0].Err != nil || got[1].Err == nil {
			t.Fatalf("%+v", got)
		}
		claims(t, owner, 10)
		enqueue(t, other.DB, message("m"))
		if _, err := other.Inbox().Process(t.Context(), holdfast.Message{ID: "c", Source: "web"},
			func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookTwice)
		if c := claims(t, owner, 10); len(c) != 1 || c[0].Message.ID != "m" {
			t.Errorf("claimed %v, want m", idsOf(c))
		}
		if c := owner.Counts(); c.Pending != 2 || c.Inbox != 2 {
			t.Errorf("counts %+v", c)
		}
		audit(t, owner.DB)
	})
}

// A savepoint of the caller's that is undone takes messages and names with it:
// none of them is delivered, and those that follow have names that exist.
func TestSavepointsInsideDo(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, db *sqlite.DB) {
		t.Helper()
		if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			_, err := tx.Enqueue(ctx, message("before"))
			statements(t, tx, "SAVEPOINT mine")
			other := message("undone")
			other.Endpoint, other.Source = "E", "S"
			_, err2 := tx.Enqueue(ctx, other)
			_, err3 := tx.Process(ctx, holdfast.Message{ID: "undone", Source: "web"}, 0, nothing)
			statements(t, tx, "rollback to mine", "RELEASE mine")
			_, err4 := tx.Enqueue(ctx, message("after"))
			_, err5 := tx.Process(ctx, holdfast.Message{ID: "after", Source: "shop"}, 0, nothing)
			return errors.Join(err, err2, err3, err4, err5)
		}); err != nil {
			t.Fatal(err)
		}
		if c := db.Counts(); c.Pending != 2 || c.Inbox != 1 {
			t.Errorf("counts %+v", c)
		}
		got, err := db.Claim(t.Context(), map[string]int{"a": 10})
		if err != nil || len(got.Claims) != 2 {
			t.Errorf("claimed %v, want before and after (%v)", idsOf(got.Claims), err)
		}
		if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			statements(t, tx, "SAVEPOINT mine")
			m := message("gone")
			m.Destination, m.Endpoint = "new", "Gone"
			_, err := tx.Enqueue(ctx, m)
			statements(t, tx, "ROLLBACK TO mine")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		next := []holdfast.Message{message("1"), message("2")}
		next[0].Destination, next[0].Endpoint = "newer", "Other"
		next[1].Destination, next[1].Endpoint = "new", "Gone"
		enqueue(t, db, next...)
		got, err = db.Claim(t.Context(), map[string]int{"new": 10, "newer": 10, "a": 10})
		if err != nil || len(got.Claims) != 2 {
			t.Errorf("claimed %v (%v), want 1 and 2", idsOf(got.Claims), err)
		}
		for _, c := range got.Claims {
			if want := map[holdfast.ID]string{"1": "Other", "2": "Gone"}[c.Message.ID]; c.Message.Endpoint != want {
				t.Errorf("%s has the endpoint %s, want %s", c.Message.ID, c.Message.Endpoint, want)
			}
		}
		if c := db.Counts(); c.Pending != 4 {
			t.Errorf("counts %+v", c)
		}
		audit(t, db)
	})
}

// A handler's savepoint inside the part of its message, which fails then.
func TestSavepointOfAHandlerThatFails(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, db *sqlite.DB) {
		t.Helper()
		got := db.Inbox().ProcessBatch(t.Context(), []holdfast.Message{{ID: "1", Source: "web"}, {ID: "2", Source: "web"}, {ID: "3", Source: "net"}},
			func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
				out := message("of-" + m.ID)
				out.Endpoint = string(m.ID)
				_, err := tx.Enqueue(ctx, out)
				if m.ID == "2" {
					statements(t, tx, "SAVEPOINT mine", "ROLLBACK TO mine")
					err = errors.Join(err, errors.New("broken"))
				}
				return nil, err
			})
		if got[0].Err != nil || got[1].Err == nil || got[2].Err != nil {
			t.Fatalf("%+v", got)
		}
		if c := db.Counts(); c.Pending != 2 || c.Inbox != 2 {
			t.Errorf("counts %+v", c)
		}
		b, err := db.Claim(t.Context(), map[string]int{"a": 10})
		if err != nil || len(b.Claims) != 2 {
			t.Errorf("claimed %v (%v)", idsOf(b.Claims), err)
		}
		audit(t, db)
	})
}

func nothing(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) { return nil, nil }

// both runs a test with a store in a file of its own and with attached ones.
func both(t *testing.T, test func(t *testing.T, db *sqlite.DB)) {
	t.Helper()
	t.Run("own file", func(t *testing.T) {
		t.Parallel()
		racetest.Bubble(t, func(t *testing.T) {
			db := fresh(t, virtual())
			defer shut(t, db)
			test(t, db)
		})
	})
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		racetest.Bubble(t, func(t *testing.T) {
			a := h.shop(t, virtual())
			defer a.shut(t)
			test(t, a.DB)
		})
	})
}
