package sqlite_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storetest"
)

// file is a store and where it stands.
type file struct {
	*sqlite.DB
	path string
	skew *time.Duration // of the machine's clock
}

// on opens the file on a machine whose clock can be set.
func (f *file) on(t testing.TB, log *slog.Logger) *file {
	t.Helper()
	f.DB = open(t, f.path, skewed(f.skew, log))
	return f
}

// skewed are options for a test in virtual time, on a machine whose clock is wrong by so much.
func skewed(skew *time.Duration, log *slog.Logger) sqlite.Options {
	start := time.Now()
	o := virtual().On(func() (time.Time, time.Duration) { return time.Now().Round(0).Add(*skew), time.Since(start) })
	o.Logger = log
	return o
}

// virtual are options for a test in virtual time, which begins in 2000.
func virtual() sqlite.Options {
	return sqlite.Options{Source: storetest.Source, SaneAfter: time.Unix(0, 0)}
}

// open opens copies as well: what a process that is killed leaves behind is
// tested with a copy of its files.
func open(t testing.TB, path string, o sqlite.Options) *sqlite.DB {
	t.Helper()
	o.Adopt = true
	db, err := sqlite.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// fresh opens a store in a folder of the test's own.
func fresh(t testing.TB, o sqlite.Options) *sqlite.DB {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "holdfast.db"), o)
}

func shut(t testing.TB, db *sqlite.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// audit fails the test for whatever must never be.
func audit(t testing.TB, db *sqlite.DB) {
	t.Helper()
	faults, err := db.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

var maker = storetest.Maker{
	Open: func(t testing.TB, log *slog.Logger) storetest.Full {
		t.Helper()
		return (&file{path: filepath.Join(t.TempDir(), "holdfast.db"), skew: new(time.Duration)}).on(t, log)
	},
	Reopen: func(t testing.TB, s storetest.Full) storetest.Full {
		t.Helper()
		f := s.(*file)
		shut(t, f.DB)
		return f.on(t, nil)
	},
	Step:  func(_ testing.TB, s storetest.Full, d time.Duration) { *s.(*file).skew += d },
	Clock: func(_ testing.TB, s storetest.Full) time.Time { return time.Now().Add(*s.(*file).skew) },
	Alone: alone,
	Run:   racetest.Bubble,
	Pass:  func(_ testing.TB, _ storetest.Full, d time.Duration) { time.Sleep(d) },
	Check: func(t testing.TB, s storetest.Full) { audit(t, s.(*file).DB) },
}

// alone leaves out, under the detector, what one goroutine does with a store. The store's own
// goroutine commits for it then as it does for the callers of the raced cases.
func alone(t testing.TB) {
	t.Helper()
	racetest.Without(t, "one goroutine calls the store; the cases in which several meet are raced")
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, maker, transaction(func(s storetest.Full) *sqlite.DB { return s.(*file).DB }))
}

// transaction is how the suite uses the store's transactions.
func transaction(db func(s storetest.Full) *sqlite.DB) storetest.Transaction[*sqlite.Tx] {
	return storetest.Transaction[*sqlite.Tx]{
		Of: func(s storetest.Full) holdfast.InboxStore[*sqlite.Tx] { return db(s) },
		Enqueue: func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) error {
			_, err := tx.Enqueue(ctx, m)
			return err
		},
	}
}
