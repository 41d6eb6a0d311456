package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// Each kind of fault has its path, whichever statement it comes from: one of
// input and output is not forgotten before a checkpoint has proven the disk;
// a full disk, a damaged page and a lock are told by their names, and the next
// call is tried as if nothing had been.
//
// SF-08; edge cases 52, 60.
func TestEachFaultHasItsPath(t *testing.T) {
	t.Parallel()
	const io = 10
	for name, c := range map[string]struct {
		code  int
		is    error // what a caller can ask for
		prove bool  // the disk has to prove itself
	}{
		"busy":              {5, nil, false},
		"read-only":         {8, sqlite.ErrReadOnly, false},
		"read-only, moved":  {8 | 4<<8, sqlite.ErrReadOnly, false},
		"read":              {io | 1<<8, nil, true},
		"short read":        {io | 2<<8, nil, true},
		"write":             {io | 3<<8, nil, true},
		"sync":              {io | 4<<8, nil, true},
		"sync of a folder":  {io | 5<<8, nil, true},
		"truncate":          {io | 6<<8, nil, true},
		"shared memory":     {io | 19<<8, nil, true},
		"damaged":           {11, sqlite.ErrDamaged, false},
		"damaged index":     {11 | 3<<8, sqlite.ErrDamaged, false},
		"full":              {13, holdfast.ErrDiskFull, false},
		"cannot open":       {14, nil, true},
		"cannot open, path": {14 | 3<<8, nil, true},
		"no database":       {26, sqlite.ErrDamaged, false},
	} {
		for _, at := range []string{"BEGIN IMMEDIATE", "INSERT INTO hf_message", "INSERT INTO hf_body", "COMMIT"} {
			t.Run(name+" at "+at, func(t *testing.T) {
				t.Parallel()
				p := &tap{}
				db := fresh(t, sqlite.Options{Reserve: -1}.With(p.wrap))
				defer shut(t, db)
				enqueue(t, db, message("before"))
				proven, times := false, 1
				if c.code == 13 {
					times = 2 // once more, in a log that begins anew
				}
				p.set(func(sql string) error {
					proven = proven || strings.Contains(sql, "wal_checkpoint(TRUNCATE)")
					if strings.HasPrefix(sql, at) && times > 0 {
						times--
						return sqliteError(c.code)
					}
					return nil
				}, nil)
				_, err := db.Enqueue(t.Context(), message("m"))
				if err == nil || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("got %v, want %v", err, c.is)
				}
				if got := stateOf(t, db, "m"); got != "nothing" {
					t.Errorf("refused, and it is %s", got)
				}
				if errors.Is(err, sqlite.ErrDamaged) { // the next start salvages
					p.set(nil, nil)
					if db.Err() == nil {
						t.Error("the store goes on with a damaged file")
					}
					return
				}
				enqueue(t, db, message("after"))
				p.set(nil, nil)
				if proven != c.prove {
					t.Errorf("a checkpoint before the next acknowledgement: %t, want %t", proven, c.prove)
				}
				audit(t, db)
			})
		}
	}
}

// A function that does not look at the errors of its statements commits
// nothing after a write that failed: what SQLite holds may not be on the disk.
func TestDoDoesNotCommitAfterAFailedWrite(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{"input/output": 10 | 3<<8, "full": 13} {
		p := &tap{}
		db := fresh(t, sqlite.Options{Reserve: -1}.With(p.wrap))
		if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			_, err := tx.ExecContext(ctx, "CREATE TABLE business (n)")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		var order []string
		p.set(func(sql string) error {
			if strings.Contains(sql, "TRUNCATE") || strings.HasPrefix(sql, "COMMIT") {
				order = append(order, sql)
			}
			return nil
		}, func(sql string) error {
			if strings.Contains(sql, "VALUES (1)") {
				return sqliteError(code) // it has written half, and not undone it
			}
			return nil
		})
		err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			_, _ = tx.ExecContext(ctx, "INSERT INTO business VALUES (1)")
			return nil
		})
		if err == nil || len(order) != 0 {
			t.Errorf("%s: got %v and %q, want an error and no commit", name, err, order)
		}
		enqueue(t, db, message("after"))
		p.set(nil, nil)
		if code != 13 && (len(order) == 0 || !strings.Contains(order[0], "TRUNCATE")) {
			t.Errorf("%s: after it: %q, want a checkpoint first", name, order)
		}
		rows, err := db.SQL(t.Context(), "SELECT count(*) FROM business")
		if err != nil || fmt.Sprint(rows) != "[[0]]" {
			t.Errorf("%s: rows %v, %v", name, rows, err)
		}
		audit(t, db)
		shut(t, db)
	}
}
