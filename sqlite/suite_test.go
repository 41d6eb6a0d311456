package sqlite_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/link"
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
func (f *file) on(t testing.TB) *file {
	t.Helper()
	start := time.Now()
	f.DB = open(t, f.path, virtual().On(func() (time.Time, time.Duration) { return time.Now().Round(0).Add(*f.skew), time.Since(start) }))
	return f
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
	Open: func(t testing.TB) storetest.Full {
		t.Helper()
		return (&file{path: filepath.Join(t.TempDir(), "holdfast.db"), skew: new(time.Duration)}).on(t)
	},
	Reopen: func(t testing.TB, s storetest.Full) storetest.Full {
		t.Helper()
		f := s.(*file)
		shut(t, f.DB)
		return f.on(t)
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
	suite(t, maker, func(s storetest.Full) *sqlite.DB { return s.(*file).DB })
	t.Run("logs", func(t *testing.T) {
		storetest.Logs(t, func(t testing.TB, log *slog.Logger) storetest.Full {
			o, path := virtual(), filepath.Join(t.TempDir(), "holdfast.db")
			o.Logger = log
			return &file{DB: open(t, path, o), path: path}
		})
	})
	t.Run("clock", func(t *testing.T) { storetest.Clock(t, maker) })
	t.Run("clock of sites", func(t *testing.T) {
		storetest.SitesClock(t, maker, func(s storetest.Full) link.Store { return s.(*file).DB })
	})
}

// suite is all that a store must pass.
func suite(t *testing.T, maker storetest.Maker, db func(s storetest.Full) *sqlite.DB) {
	t.Helper()
	t.Run("enqueuer", func(t *testing.T) { storetest.Enqueuer(t, maker) })
	t.Run("claims", func(t *testing.T) { storetest.Claims(t, maker) })
	t.Run("expiry", func(t *testing.T) { storetest.Expiry(t, maker) })
	t.Run("keys", func(t *testing.T) { storetest.Keys(t, maker) })
	t.Run("outbox", func(t *testing.T) { storetest.Outbox(t, maker) })
	t.Run("verbs", func(t *testing.T) { storetest.Verbs(t, maker) })
	t.Run("lanes", func(t *testing.T) { storetest.Lanes(t, maker) })
	t.Run("purging", func(t *testing.T) { storetest.Purging(t, maker) })
	t.Run("notices", func(t *testing.T) { storetest.Notices(t, maker) })
	t.Run("notifications", func(t *testing.T) { storetest.Notify(t, maker) })
	t.Run("sites", func(t *testing.T) { storetest.Sites(t, maker, func(s storetest.Full) link.Store { return db(s) }) })
	t.Run("inbox log", func(t *testing.T) { storetest.InboxLog(t, maker) })
	with := storetest.Transaction[*sqlite.Tx]{
		Of: func(s storetest.Full) holdfast.InboxStore[*sqlite.Tx] { return db(s) },
		Enqueue: func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) error {
			_, err := tx.Enqueue(ctx, m)
			return err
		},
	}
	t.Run("inbox store", func(t *testing.T) { storetest.InboxStore(t, maker, with) })
	t.Run("inbox batch", func(t *testing.T) { storetest.InboxBatch(t, maker, with) })
}
