package sqlite_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	_ "modernc.org/sqlite"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storetest"
)

// handle is a way in which a program opens its own database.
type handle struct {
	driver, options string
	pool            int
}

// handles are the drivers that a caller may have, each with a pool of one and
// of many.
func handles() map[string]handle {
	const modernc, mattn = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)", "?_journal_mode=WAL&_synchronous=FULL"
	return map[string]handle{
		"modernc, pool of one":  {"sqlite", modernc, 1},
		"modernc, pool of many": {"sqlite", modernc + "&_pragma=busy_timeout(5000)", 8},
		"mattn, pool of one":    {"sqlite3", mattn, 1},
		"mattn, pool of many":   {"sqlite3", mattn + "&_busy_timeout=5000", 8},
	}
}

func (h handle) open(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open(h.driver, "file:"+path+h.options)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(h.pool)
	return db
}

// eachHandle runs a test with every way to open the caller's database.
func eachHandle(t *testing.T, test func(t *testing.T, h handle)) {
	t.Helper()
	for name, h := range handles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h)
		})
	}
}

// app is a program with a database of its own, the store in it.
type app struct {
	*sqlite.DB
	h      handle
	handle *sql.DB
	path   string
	skew   *time.Duration // of the machine's clock; nil: it is right
}

func (h handle) attach(t testing.TB, path string, o sqlite.Options) *app {
	t.Helper()
	a := &app{h: h, handle: h.open(t, path), path: path}
	var err error
	if a.DB, err = sqlite.Attach(t.Context(), a.handle, o); err != nil {
		t.Fatal(errors.Join(err, a.handle.Close()))
	}
	return a
}

func (a *app) Close() error { return errors.Join(a.DB.Close(), a.handle.Close()) }

// The same suite that the store in a file of its own passes (OI-01).
func TestAttachedStore(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		if h.driver != "sqlite" || h.pool == 1 {
			racetest.Without(t, "one handle is enough for the detector")
		}
		m := storetest.Maker{
			Open: func(t testing.TB, log *slog.Logger) storetest.Full {
				skew := new(time.Duration)
				a := h.attach(t, filepath.Join(t.TempDir(), "app.db"), skewed(skew, log).Looking(time.Hour))
				a.skew = skew
				return a
			},
			Reopen: func(t testing.TB, s storetest.Full) storetest.Full {
				was := s.(*app)
				if err := was.Close(); err != nil {
					t.Error(err)
				}
				a := h.attach(t, was.path, skewed(was.skew, nil).Looking(time.Hour))
				a.skew = was.skew
				return a
			},
			Clock: func(_ testing.TB, s storetest.Full) time.Time { return time.Now().Add(*s.(*app).skew) },
			Alone: alone,
			Run:   racetest.Bubble,
			Pass:  func(_ testing.TB, _ storetest.Full, d time.Duration) { time.Sleep(d) },
			Check: func(t testing.TB, s storetest.Full) { audit(t, s.(*app).DB) },
		}
		if h.driver == "sqlite" && h.pool > 1 { // the belief in the clock is the same with every handle
			m.Step = func(_ testing.TB, s storetest.Full, d time.Duration) { *s.(*app).skew += d }
		}
		storetest.Run(t, m, transaction(func(s storetest.Full) *sqlite.DB { return s.(*app).DB }))
	})
}
