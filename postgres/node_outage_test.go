package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// outcomes are what callers were told, by payload.
type outcomes struct {
	mu     sync.Mutex
	told   map[string]error
	worst  time.Duration
	strays []error
}

// enqueueFrom enqueues from several goroutines until ctx ends. Each call has to
// end within the bound. It returns when some have ended.
func enqueueFrom(ctx context.Context, t testing.TB, db *postgres.DB, goroutines int) (wait func() *outcomes) {
	t.Helper()
	o := &outcomes{told: map[string]error{}}
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("%d-%d", g, i)
				began := time.Now()
				_, err := db.Enqueue(context.WithoutCancel(ctx), holdfast.Message{Destination: "a", Endpoint: "e", Kind: holdfast.Command, Payload: []byte(name)})
				took := time.Since(began)
				o.mu.Lock()
				o.told[name], o.worst = err, max(o.worst, took)
				if err != nil && !errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, postgres.ErrUnknown) {
					o.strays = append(o.strays, err)
				}
				o.mu.Unlock()
				if err != nil {
					time.Sleep(5 * time.Millisecond) // as a caller would, but shorter
				}
			}
		})
	}
	o.more(t, goroutines)
	return func() *outcomes {
		all.Wait()
		return o
	}
}

// more waits until n more calls have ended, however.
func (o *outcomes) more(t testing.TB, n int) {
	t.Helper()
	ended := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.told)
	}
	before := ended()
	waittest.Until(t, "more calls have ended", func() bool { return ended() >= before+n })
}

// check compares what was told with what there is.
func (o *outcomes) check(t testing.TB, dsn string, bound time.Duration) {
	t.Helper()
	stored := map[string]int{}
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	rows, err := c.Query(t.Context(), `SELECT convert_from(payload, 'UTF8') FROM hf_message`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		stored[name]++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	accepted, refused, unknown := 0, 0, 0
	for name, err := range o.told {
		n := stored[name]
		switch {
		case err == nil:
			accepted++
			if n != 1 {
				t.Errorf("%s was acknowledged and is there %d times", name, n)
			}
		case errors.Is(err, postgres.ErrUnknown):
			unknown++
			if n > 1 {
				t.Errorf("%s is there %d times", name, n)
			}
		default:
			refused++
			if n != 0 {
				t.Errorf("%s was refused and is there: %v", name, err)
			}
		}
	}
	for _, err := range o.strays {
		t.Errorf("a call: %v, want ErrUnavailable or ErrUnknown", err)
	}
	t.Logf("%d acknowledged, %d refused, %d unknown, the longest call took %v", accepted, refused, unknown, o.worst.Round(time.Millisecond))
	if accepted == 0 {
		t.Error("nothing was acknowledged")
	}
	if o.worst > bound {
		t.Errorf("the longest call took %v, want at most %v", o.worst, bound)
	}
}

// settled waits until calls work again, without anybody's help.
func settled(t testing.TB, db *postgres.DB) {
	t.Helper()
	waittest.Until(t, "the store has recovered", func() bool {
		_, err := db.Enqueue(t.Context(), holdfast.Message{Destination: "z", Endpoint: "e", Kind: holdfast.Command, Payload: []byte("after")})
		return err == nil
	})
}

// A database that is restarted, stopped as by a crash, killed or stalled under
// load: no call hangs, nothing that was acknowledged is lost, nothing that was
// refused is there, and the store goes on by itself.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	for what, away := range map[string]func(s *pgtest.Server) error{
		"restart":        func(s *pgtest.Server) error { return s.Restart(pgtest.Fast) },
		"immediate stop": func(s *pgtest.Server) error { return s.Restart(pgtest.Immediate) },
		"kill":           func(s *pgtest.Server) error { return errors.Join(s.Kill(), s.Start()) },
		"stall": func(s *pgtest.Server) error {
			err := s.Pause()
			time.Sleep(timeout + timeout/2)
			return errors.Join(err, s.Resume())
		},
		"stop": func(s *pgtest.Server) error {
			err := s.Stop(pgtest.Fast)
			time.Sleep(timeout)
			return errors.Join(err, s.Start())
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := pgtest.Start(t, pgtest.Options{NoSync: true})
			dsn := s.Database(t)
			db := open(t, dsn, postgres.Options{Timeout: timeout})
			ctx, stop := context.WithCancel(t.Context())
			wait := enqueueFrom(ctx, t, db, 16)
			if err := away(s); err != nil {
				t.Error(err)
			}
			settled(t, db)
			stop()
			// Its turn, the transaction, and what became of the commit.
			wait().check(t, dsn, 4*timeout)
			audit(t, db)
			shut(t, db)
		})
	}
}
