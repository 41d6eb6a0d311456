package storecopy_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// killed makes a file what it was when its process was killed: its log is
// there, with commits that are nowhere else.
func killed(t testing.TB, path string, fill func(db full)) {
	t.Helper()
	db := open(t, path)
	fill(db)
	content := map[string][]byte{}
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		must(t, err)
		content[suffix] = b
	}
	shut(t, db)
	for suffix, b := range content {
		must(t, os.WriteFile(path+suffix, b, 0o600))
	}
}

// A log with commits that do not match their checksums ends there for SQLite:
// what stands behind would be left out, and the source be marked as moved.
func TestASourceWithADamagedLogIsRefused(t *testing.T) {
	t.Parallel()
	from, to := newFile(t), newFile(t)
	killed(t, from, func(db full) {
		for range 30 {
			put(t, db, holdfast.Message{})
		}
	})
	log, err := os.ReadFile(from + "-wal")
	must(t, err)
	log[len(log)/2] ^= 0xff
	must(t, os.WriteFile(from+"-wal", log, 0o600))
	if err := copyStore(t.Context(), from, to, nil); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("copy: %v, want ErrDamaged", err)
	}
}

// What was killed is whole, and is copied whole.
func TestASourceThatWasKilledIsCopied(t *testing.T) {
	t.Parallel()
	from, to := newFile(t), newFile(t)
	killed(t, from, func(db full) {
		for range 30 {
			put(t, db, holdfast.Message{})
		}
	})
	copied(t, from, to)
	db := open(t, to)
	defer shut(t, db)
	if n := db.Counts().Pending; n != 30 {
		t.Errorf("%d messages are pending, want 30", n)
	}
}

// A copy of a file that was made while its node ran is refused by a node, and
// as a source too: the node goes on delivering what would be delivered there.
func TestACopiedFileIsNoSource(t *testing.T) {
	t.Parallel()
	original, from := newFile(t), newFile(t)
	db := open(t, original)
	defer shut(t, db)
	put(t, db, holdfast.Message{})
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(original + suffix)
		must(t, err)
		must(t, os.WriteFile(from+suffix, b, 0o600))
	}
	if _, err := tryOpen(t.Context(), from); !errors.Is(err, sqlite.ErrCopied) {
		t.Skipf("this system does not tell copies: %v", err)
	}
	if err := copyStore(t.Context(), from, newFile(t), nil); !errors.Is(err, sqlite.ErrCopied) {
		t.Errorf("copy: %v, want ErrCopied", err)
	}
}

// What a copy that was cut off has left holds a part only.
func TestAnUnfinishedTargetIsNoSource(t *testing.T) {
	t.Parallel()
	for name, middle := range map[string]func(t testing.TB) string{"sqlite": newFile, "postgres": func(t testing.TB) string { return pgtest.Shared(t).Database(t) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, half := newFile(t), middle(t)
			db := open(t, from)
			put(t, db, make([]holdfast.Message, 10)...)
			shut(t, db)
			ctx, cancel := context.WithCancel(t.Context())
			if err := copyStore(ctx, from, half, func(s storecopy.Status) {
				if s.Done > 0 {
					cancel()
				}
			}); err == nil {
				t.Fatal("the copy was not cut off")
			}
			if err := copyStore(t.Context(), half, newFile(t), nil); !errors.Is(err, storecopy.ErrUnfinished) {
				t.Errorf("copy of a half: %v, want ErrUnfinished", err)
			}
			copied(t, from, half)
			copied(t, half, newFile(t))
		})
	}
}

// Keys that nobody has looked at are placed at the end. If the copy dies right
// after that it can still be ended.
func TestACopyThatDiesAfterPlacingGoesOn(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	from := s.Database(t)
	db := open(t, from)
	put(t, db, holdfast.Message{ID: "k1", OrderingKey: "k"}, holdfast.Message{ID: "k2", OrderingKey: "k"})
	shut(t, db)
	c, err := pgx.Connect(t.Context(), from)
	must(t, err)
	defer c.Close(t.Context())
	_, err = c.Exec(t.Context(), `UPDATE hf_queue SET blocked = 2, due = expires`) // as a caller's transaction leaves them
	must(t, err)
	for name, to := range map[string]string{"sqlite": newFile(t), "postgres": s.Database(t)} {
		cut := 0
		err := copyStore(t.Context(), from, to, func(st storecopy.Status) {
			if st.Phase == "compare" && cut == 0 {
				cut++ // the source's guard: what keeps it from being marked
				_, err := c.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle in transaction'`)
				must(t, err)
			}
		})
		if err == nil {
			t.Fatalf("%s: the copy was not cut off", name)
		}
		if err := copyStore(t.Context(), from, to, nil); err != nil {
			t.Errorf("%s: begun again: %v", name, err)
		}
		b, err := claimed(t, to)
		if err != nil || len(b.Claims) != 1 || b.Claims[0].Message.ID != "k1" {
			t.Errorf("%s: claimed %+v, %v; want k1", name, b.Claims, err)
		}
		_, err = c.Exec(t.Context(), `DELETE FROM hf_meta WHERE key = 'moved'`)
		must(t, err)
	}
}

func claimed(t testing.TB, at string) (holdfast.Batch, error) {
	t.Helper()
	db := open(t, at)
	defer shut(t, db)
	return db.Claim(t.Context(), map[string]int{"a": 10})
}
