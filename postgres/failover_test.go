package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// The primary is killed under load and its standby promoted: a store whose
// address names both goes on there by itself. With a synchronous standby
// nothing that was acknowledged is lost, and nothing that was refused is there.
func TestFailoverWithASynchronousStandby(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	primary := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := primary.Database(t)
	standby := primary.Standby(t, "other", pgtest.Options{NoSync: true})
	if err := primary.Exec("postgres", `ALTER SYSTEM SET synchronous_standby_names = 'other'`, `SELECT pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
	both, err := primary.Both(standby, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, both, postgres.Options{Timeout: timeout})
	ctx, stop := context.WithCancel(t.Context())
	wait := enqueueFrom(ctx, t, db, 16)
	if err := primary.Kill(); err != nil {
		t.Error(err)
	}
	if err := standby.Promote(); err != nil {
		t.Error(err)
	}
	settled(t, db)
	stop()
	wait().check(t, standby.DSN(nameOf(t, dsn)), 4*timeout)
	audit(t, db)
	info, err := db.Server(t.Context())
	if err != nil || info.SynchronousWith != "" {
		t.Errorf("Server = %+v, %v", info, err)
	}
	shut(t, db)
}

// A store that is pointed at a standby says so, and opens once it is promoted.
func TestStandbyIsRefused(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{NoSync: true})
	standby := primary.Standby(t, "other", pgtest.Options{NoSync: true})
	refuse(t, standby.DSN("postgres"), postgres.ErrReadOnly, "standby")
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, standby.DSN("postgres"), postgres.Options{}))
}

// A synchronous standby that is away holds commits up. They are not called
// done before it has them, also when somebody ends their wait; nor undone.
func TestSynchronousStandbyAway(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second // within twice of it a standby has to start on a busy machine
	primary := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := primary.Database(t)
	standby := primary.Standby(t, "other", pgtest.Options{NoSync: true})
	if err := primary.Exec("postgres", `ALTER SYSTEM SET synchronous_standby_names = 'other'`, `SELECT pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
	db := open(t, dsn, postgres.Options{Timeout: timeout})
	m := holdfast.Message{Destination: "a", Endpoint: "e", Kind: holdfast.Command}
	if _, err := db.Enqueue(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := standby.Stop(pgtest.Immediate); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err := db.Enqueue(t.Context(), m)
	if took := time.Since(began); !errors.Is(err, postgres.ErrUnknown) || errors.Is(err, holdfast.ErrUnavailable) || took > 4*timeout {
		t.Errorf("Enqueue without the standby: %v after %v", err, took.Round(time.Millisecond))
	}
	// begin enqueues, and ends the commit's wait as an operator would.
	begin := func(end string) <-chan error {
		t.Helper()
		told := make(chan error, 1)
		go func() {
			_, err := db.Enqueue(t.Context(), m)
			told <- err
		}()
		waitFor(t, dsn, `SELECT count(`+end+`(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%hf_message%' AND datname = current_database()`, 1)
		return told
	}
	for what, end := range map[string]string{"cancelled": "pg_cancel_backend", "terminated": "pg_terminate_backend"} {
		if err := <-begin(end); !errors.Is(err, postgres.ErrUnknown) {
			t.Errorf("Enqueue, %s by an operator: %v", what, err)
		}
	}
	told := begin("pg_cancel_backend")
	if err := standby.Start(); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil {
		t.Errorf("Enqueue, cancelled by an operator, and then the standby got it: %v", err)
	}
	settled(t, db)
	if n := count(t, dsn, `SELECT count(*) FROM hf_message WHERE payload = ''`); n != 5 {
		t.Errorf("%d messages of 5 whose commit was begun", n)
	}
	shut(t, db)
}
