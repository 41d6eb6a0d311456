package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// openStore opens a store on a file of the test's own. Inside a synctest
// bubble the clock shows the year 2000, which must not suspend expiry here.
func openStore(tb testing.TB) *sqlite.DB {
	tb.Helper()
	return openStoreAt(tb, filepath.Join(tb.TempDir(), "holdfast.db"))
}

func openStoreAt(tb testing.TB, path string) *sqlite.DB {
	tb.Helper()
	return openStoreWith(tb, path, sqlite.Options{})
}

// openStoreWith opens with further options.
func openStoreWith(tb testing.TB, path string, o sqlite.Options) *sqlite.DB {
	tb.Helper()
	o.Source, o.SaneAfter, o.Adopt = "test", time.Unix(1, 0), true
	db, err := sqlite.Open(tb.Context(), path, o)
	if err != nil {
		tb.Fatal(err)
	}
	return db
}

// closeStore is called inside the bubble: cleanups run outside of it.
func closeStore(tb testing.TB, db *sqlite.DB) {
	tb.Helper()
	if err := db.Close(); err != nil {
		tb.Errorf("close store: %v", err)
	}
}

// script is a destination that answers as it is told and remembers every
// attempt.
type script struct {
	answer func(ctx context.Context, m holdfast.Message) error

	mu       sync.Mutex
	attempts []tried
}

type tried struct {
	id      holdfast.ID
	at      time.Time
	attempt holdfast.Attempt
}

func (s *script) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	s.mu.Lock()
	s.attempts = append(s.attempts, tried{m.ID, time.Now(), m.Attempt})
	answer := s.answer
	s.mu.Unlock()
	if answer == nil {
		return holdfast.Receipt{ID: m.ID}, nil
	}
	return holdfast.Receipt{ID: m.ID}, answer(ctx, m)
}

func (s *script) become(answer func(ctx context.Context, m holdfast.Message) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *script) tries() []tried {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]tried(nil), s.attempts...)
}

func (s *script) count() int { return len(s.tries()) }

// since returns when each attempt was made, counted from the first.
func (s *script) since() []time.Duration {
	var list []time.Duration
	tries := s.tries()
	for _, a := range tries {
		list = append(list, a.at.Sub(tries[0].at))
	}
	return list
}

var (
	errTransient   = &holdfast.Failure{Code: "busy", Err: errors.New("busy")}
	errPermanent   = &holdfast.Failure{Outcome: holdfast.Permanent, Code: "refused", Err: errors.New("refused")}
	errUnreachable = &holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connection_refused", Err: errors.New("connection refused")}
	errLaneFault   = &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "unauthorized", Err: errors.New("credentials refused")}
)

func always(err error) func(context.Context, holdfast.Message) error {
	return func(context.Context, holdfast.Message) error { return err }
}

// dispatch runs a dispatcher until the returned function is called, which
// reports what Run returned.
func dispatch(tb testing.TB, d *holdfast.Dispatcher) (stop func() error) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func enqueue(tb testing.TB, to holdfast.Enqueuer, ms ...holdfast.Message) []holdfast.ID {
	tb.Helper()
	for i := range ms {
		if ms[i].Endpoint == "" {
			ms[i].Endpoint = "E"
		}
		if ms[i].Payload == nil {
			ms[i].Payload = []byte(`{}`)
		}
	}
	receipts, err := to.Enqueue(tb.Context(), ms...)
	if err != nil {
		tb.Fatal(err)
	}
	ids := make([]holdfast.ID, len(receipts))
	for i, r := range receipts {
		ids[i] = r.ID
	}
	return ids
}

func record(tb testing.TB, db *sqlite.DB, id holdfast.ID) holdfast.Record {
	tb.Helper()
	r, err := db.Get(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func wantState(tb testing.TB, db *sqlite.DB, id holdfast.ID, want holdfast.State) holdfast.Record {
	tb.Helper()
	r := record(tb, db, id)
	if r.State != want {
		tb.Errorf("message %s is %s (reason %q, last error %q), want %s", id, r.State, r.Reason, r.LastError, want)
	}
	return r
}

func numbered(n int, destination string) []holdfast.Message {
	ms := make([]holdfast.Message, n)
	for i := range ms {
		ms[i] = holdfast.Message{ID: holdfast.ID(fmt.Sprintf("%s-%d", destination, i)), Destination: destination}
	}
	return ms
}
