package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// F1-120, F1-121: all commits of a node hang at an old primary, those of its
// heartbeat among them, when its standby has been promoted. The node enters the
// new history at once, and not when the old one's time is over; what hung is
// answered, and no connection is lost to it.
func TestCommitsThatHangAreLeftWithTheirHistory(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]func(t *testing.T, primary, standby *pgtest.Server, dsn string) (address string, move func()){
		"both in the address": func(t *testing.T, primary, standby *pgtest.Server, dsn string) (string, func()) {
			t.Helper()
			both, err := primary.Both(standby, dsn)
			if err != nil {
				t.Fatal(err)
			}
			return both, func() {}
		},
		"an address that moves": func(t *testing.T, _, standby *pgtest.Server, dsn string) (string, func()) {
			t.Helper()
			p, through := newProxy(t, dsn)
			return through, func() { p.leadTo(t, standby.DSN(nameOf(t, dsn))) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := pgtest.Start(t, pgtest.Options{NoSync: true})
			dsn := primary.Database(t)
			standby := primary.Standby(t, "other", pgtest.Options{NoSync: true})
			address, move := reach(t, primary, standby, dsn)
			db := open(t, address, postgres.Options{Source: "s", Node: "n", Lease: 2 * time.Second, Timeout: 10 * time.Minute})
			kept := acknowledged(t, db, 1)
			if err := primary.Exec("postgres", `ALTER SYSTEM SET synchronous_standby_names = 'other'`, `SELECT pg_reload_conf()`); err != nil {
				t.Fatal(err)
			}
			cutOff(t, primary, standby)
			const waiting = `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'holdfast n'`
			waitFor(t, dsn, waiting, 1) // the heartbeat is the only one
			answers := hang(t, db)
			waitFor(t, dsn, waiting, 12) // of 16 connections
			if err := standby.Promote(); err != nil {
				t.Fatal(err)
			}
			move()
			waittest.Until(t, "the node tells of the new history", func() bool { return db.Gap() != nil })
			waittest.Until(t, "all that hung is answered", func() bool { return len(answers) == cap(answers) })
			for range cap(answers) {
				a := <-answers
				if a.err == nil && a.id != "" && !has(t, db, a.id) {
					t.Errorf("%s was acknowledged, and is not in the new history", a.id)
				}
				if a.err != nil && !errors.Is(a.err, holdfast.ErrUnavailable) && !errors.Is(a.err, postgres.ErrUnknown) {
					t.Error(a.err)
				}
			}
			for _, m := range append(kept, acknowledged(t, db, 3)...) {
				if count(t, standby.DSN(nameOf(t, dsn)), `SELECT count(*) FROM hf_message WHERE id = $1`, raw(m.id)) != 1 {
					t.Errorf("%s is not in the new history", m.id)
				}
			}
			shut(t, db)
		})
	}
}

// F1-123: a store that is given up while calls hang closes at once, also where the
// server answers no request to cancel: a stop keeps its bound however many hang.
func TestAStoreThatIsGivenUpWaitsForNoCancel(t *testing.T) {
	t.Parallel()
	p, through := newProxy(t, database(t))
	db := open(t, through, postgres.Options{Source: "s", Node: "n", Timeout: 10 * time.Minute})
	const calls = 6
	answers, ctx := make(chan error, calls), context.WithoutCancel(t.Context())
	for range calls {
		go func() { answers <- db.Own(ctx, `SELECT pg_sleep(600)`) }()
	}
	waitFor(t, through, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`, calls)
	p.deaf.Store(true)
	db.GiveUp()
	for range cap(answers) {
		if err := <-answers; !errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, postgres.ErrUnknown) {
			t.Errorf("a call got %v", err)
		}
	}
	waittest.Until(t, "all requests to cancel are under way", func() bool { return p.unheard.Load() >= calls }) // a heartbeat may have one, too
	if err := db.Close(); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("the goodbye got %v", err)
	}
	if n := p.unheard.Load(); n < calls {
		t.Errorf("Close has waited for %d requests to cancel", calls-n)
	}
}

// answered is what became of a call.
type answered struct {
	id  holdfast.ID
	err error
}

// hang takes all connections of a store whose commits hang.
func hang(t *testing.T, db *postgres.DB) chan answered {
	t.Helper()
	const each = 8
	answers, ctx := make(chan answered, 2*each), context.WithoutCancel(t.Context())
	for i := range each {
		go func() {
			answers <- answered{"", db.Own(ctx, fmt.Sprintf(`INSERT INTO hf_meta (key, value) VALUES ('hangs-%d', '')`, i))}
		}()
		go func() {
			id := holdfast.ID(fmt.Sprint("hangs-", i))
			answers <- answered{id, db.Do(ctx, func(ctx context.Context, tx *postgres.Tx) error {
				_, err := tx.Enqueue(ctx, simple(id))
				return err
			})}
		}()
	}
	return answers
}
