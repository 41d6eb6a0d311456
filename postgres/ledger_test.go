package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

var failovers = flag.Int("failovers", 2, "how many times the tests of ledgers fail over, or restore to a point in time")

// F1-120, F1-121: programs submit while synchronous standbys are promoted, one
// after the other; the old primary is killed, or goes on alone. What was
// acknowledged, by a ledger of those who submit, is there once, and nothing else
// is there twice. Any number of failovers by -args -failovers=N.
func TestLedgerOfSynchronousFailovers(t *testing.T) {
	t.Parallel()
	now := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := now.Database(t)
	name := nameOf(t, dsn)
	p, through := newProxy(t, dsn)
	db := open(t, through, postgres.Options{Source: "s", Node: "n", Lease: 2 * time.Second, Timeout: 5 * time.Second})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	wait := enqueueFrom(ctx, t, db, 8)
	for n := range *failovers {
		who := fmt.Sprint("other", n)
		standby := now.Standby(t, who, pgtest.Options{NoSync: true})
		if err := now.Exec("postgres", `ALTER SYSTEM SET synchronous_standby_names = '`+who+`'`, `SELECT pg_reload_conf()`); err != nil {
			t.Fatal(err)
		}
		awaitSync(t, now.DSN("postgres"), who)
		if n%2 == 0 {
			if err := now.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if err := standby.Promote(); err != nil {
			t.Fatal(err)
		}
		if err := standby.Exec("postgres", `ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`); err != nil {
			t.Fatal(err)
		}
		p.leadTo(t, standby.DSN(name))
		settled(t, db)
		now = standby
	}
	stop()
	wait().check(t, now.DSN(name), time.Hour)
	audit(t, db)
	shut(t, db)
}

// awaitSync returns once a standby counts, and has all that was acknowledged
// before it did.
func awaitSync(t *testing.T, dsn, who string) {
	t.Helper()
	waitFor(t, dsn, `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND application_name = '`+who+`'`, 1)
	waitFor(t, dsn, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`, 1) // commits wait for it from here on
	is := ask[string](t, dsn, `SELECT pg_current_wal_flush_lsn()::text`)
	waitFor(t, dsn, fmt.Sprintf(`SELECT count(*) FROM pg_stat_replication WHERE application_name = '%s' AND flush_lsn >= '%s'`, who, is), 1)
}

// entry is a line of a ledger.
type entry struct {
	id            holdfast.ID
	asked, answer time.Time
}

// F1-125: the database is put back to a point in time under a node. What was
// acknowledged and is gone was so within what the node itself says, from when to
// when. Any number of times by -args -failovers=N.
func TestLedgerOfAPointInTime(t *testing.T) {
	t.Parallel()
	now := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := now.Database(t)
	name := nameOf(t, dsn)
	p, through := newProxy(t, dsn)
	db := open(t, through, quick("n"))
	var ledger []entry
	for n := range *failovers {
		point := fmt.Sprint("here", n)
		copied := now.Standby(t, fmt.Sprint("copy", n), pgtest.Options{NoSync: true, Settings: map[string]string{"recovery_target_name": point, "recovery_target_action": "promote"}})
		before := written(t, db, 20)
		if err := now.Exec("postgres", `SELECT pg_create_restore_point('`+point+`')`); err != nil {
			t.Fatal(err)
		}
		after := written(t, db, 20)
		waittest.Until(t, "the copy has come to the point", func() bool { return !ask[bool](t, copied.DSN("postgres"), `SELECT pg_is_in_recovery()`) })
		if err := now.Kill(); err != nil {
			t.Fatal(err)
		}
		p.leadTo(t, copied.DSN(name))
		waittest.Until(t, "the node tells of the new history", func() bool { return db.Gap() != nil })
		settled(t, db)
		ledger = append(ledger, before...)
		for _, e := range ledger {
			if !has(t, db, e.id) {
				t.Errorf("%s was acknowledged before the point, and is gone", e.id)
			}
		}
		if lost := judgeLost(t, db, after); lost == 0 {
			t.Error("nothing is gone: there was no restore")
		}
		if err := db.Acknowledge(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = copied
	}
	audit(t, db)
	shut(t, db)
}

// written has messages written down, by those who submit them, when they are acknowledged.
func written(t *testing.T, db *postgres.DB, n int) (list []entry) {
	t.Helper()
	for range n {
		a := acknowledged(t, db, 1)[0]
		list = append(list, entry{a.id, a.asked, time.Now()})
	}
	return list
}

// judgeLost counts what is gone, all of which the node has to tell of.
func judgeLost(t *testing.T, db *postgres.DB, list []entry) (lost int) {
	t.Helper()
	g := db.Gap()
	for _, e := range list {
		if has(t, db, e.id) {
			continue
		}
		lost++
		if e.answer.Before(g.From) || e.asked.After(g.To) {
			t.Errorf("%s was asked for at %s, acknowledged at %s, and is gone; the node says from %s to %s", e.id, e.asked, e.answer, g.From, g.To)
		}
	}
	t.Logf("%d of %d that were acknowledged are gone, between %s and %s", lost, len(list), g.From, g.To)
	return lost
}
