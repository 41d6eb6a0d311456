package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// ask reads one value off a server, which may be none of a test's own.
func ask[T any](t testing.TB, dsn, query string) (v T) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	if err := c.QueryRow(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// cutOff ends the copying of a standby, once it has all that is there now.
func cutOff(t testing.TB, primary, standby *pgtest.Server) {
	t.Helper()
	is := ask[string](t, primary.DSN("postgres"), `SELECT pg_current_wal_flush_lsn()::text`)
	waittest.Until(t, "the standby has all", func() bool {
		return ask[bool](t, standby.DSN("postgres"), fmt.Sprintf(`SELECT pg_last_wal_replay_lsn() >= '%s'`, is))
	})
	if err := standby.Exec("postgres", `ALTER SYSTEM SET primary_conninfo = ''`, `SELECT pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the standby gets no more", func() bool {
		return ask[int](t, standby.DSN("postgres"), `SELECT count(*)::integer FROM pg_stat_wal_receiver`) == 0
	})
}

// raw is an id of the store's own as the tables have it.
func raw(id holdfast.ID) []byte {
	u, _ := id.UUID()
	return append([]byte{1}, u[:]...)
}

// as is the address for another role.
func as(t testing.TB, dsn, role, password string) string {
	t.Helper()
	return with(t, dsn, func(u *url.URL) { u.User = url.UserPassword(role, password) })
}

// told is a message that was acknowledged, and when it was asked for.
type told struct {
	id    holdfast.ID
	asked time.Time
}

func acknowledged(t testing.TB, db *postgres.DB, n int) (list []told) {
	t.Helper()
	for range n {
		asked := time.Now()
		r, err := db.Enqueue(t.Context(), simple(""))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, told{r[0].ID, asked})
	}
	return list
}

func has(t testing.TB, db *postgres.DB, id holdfast.ID) bool {
	t.Helper()
	_, err := db.Get(t.Context(), id)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// F1-121, F1-125, F1-130: an asynchronous standby that is behind is promoted, and
// the old primary goes on. The node leaves it, has in hand what the new history
// says, and tells until somebody acknowledges it from when to when acknowledged
// work may be gone. After that nothing that it acknowledges is.
func TestAnAsynchronousStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := primary.Database(t)
	standby := primary.Standby(t, "other", pgtest.Options{NoSync: true})
	both, err := primary.Both(standby, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, both, quick("n"))
	kept := acknowledged(t, db, 3)
	given := until(t, db, 3)
	cutOff(t, primary, standby)
	if won := settleAll(t, db, given, holdfast.Settlement{State: holdfast.Delivered, Outcome: holdfast.Succeeded}); won != 3 {
		t.Fatalf("%d settled", won)
	}
	gone := acknowledged(t, db, 5)
	if g := db.Gap(); g != nil {
		t.Errorf("before the failover it tells of %s", g)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	db.LookAround(t.Context())
	if list := db.Primaries(); len(list) != 2 {
		t.Errorf("the servers that take writes are %v", list)
	}
	waittest.Until(t, "the node tells of the new history", func() bool { return db.Gap() != nil })
	settled(t, db)
	for _, m := range append(kept, acknowledged(t, db, 5)...) {
		if !has(t, db, m.id) || count(t, standby.DSN(nameOf(t, dsn)), `SELECT count(*) FROM hf_message WHERE id = $1`, raw(m.id)) != 1 {
			t.Errorf("%s is not in the new history", m.id)
		}
	}
	g := db.Gap()
	for _, m := range gone {
		if !has(t, db, m.id) && (m.asked.Before(g.From.Add(-time.Minute)) || m.asked.After(g.To)) {
			t.Errorf("%s was asked for at %s, acknowledged and is gone; the node says from %s to %s", m.id, m.asked, g.From, g.To)
		}
	}
	if got := until(t, db, 8); len(got) != 8 { // three of them of before
		t.Errorf("%d are handed out", len(got))
	}
	if err := joined(t, db, dsn); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("a caller's transaction at the old primary: %v", err)
	}
	if err := joined(t, db, standby.DSN(nameOf(t, dsn))); err != nil {
		t.Errorf("a caller's transaction at the new one: %v", err)
	}
	audit(t, db)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	db.LookAround(t.Context())
	if list := db.Primaries(); list != nil {
		t.Errorf("after the end of the old one the servers that take writes are %v", list)
	}
	shut(t, db)
	db = open(t, both, quick("n"))
	if db.Gap() == nil {
		t.Error("after a restart of the node it tells of nothing")
	}
	if in, err := postgres.Inspect(t.Context(), both); err != nil || in.Gap == nil || *in.Gap != *db.Gap() {
		t.Errorf("who only looks sees %v, %v; want %v", in.Gap, err, db.Gap())
	}
	if err := db.Acknowledge(t.Context()); err != nil || db.Gap() != nil {
		t.Errorf("Acknowledge: %v, and it tells of %v", err, db.Gap())
	}
	shut(t, db)
	db = open(t, both, quick("n"))
	if g := db.Gap(); g != nil {
		t.Errorf("it is acknowledged, and the node tells of %s", g)
	}
	shut(t, db)
}

// joined enqueues in a transaction of a caller's own connection, and rolls it back.
func joined(t *testing.T, db *postgres.DB, dsn string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.In(tx).Enqueue(t.Context(), simple(""))
	return err
}

// F1-124: a dump is restored in place while a node runs, and numbers of names
// are given again: what is sent under one name is not kept under another.
func TestADumpIsRestoredUnderANode(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn := server.Database(t)
	db := opened(t, dsn, postgres.Options{Source: "s", Node: "n", Lease: 5 * time.Second, Timeout: 2 * time.Second})
	named := func(endpoint string) holdfast.Message {
		m := simple("")
		m.Endpoint = endpoint
		return m
	}
	send := func(m holdfast.Message) error {
		_, err := db.Enqueue(t.Context(), m)
		return err
	}
	if err := send(named("Order")); err != nil {
		t.Fatal(err)
	}
	dump := nameOf(t, dsn) + ".dump"
	if err := server.Tool("pg_dump", "--format=custom", "--file="+dump, "--dbname="+dsn); err != nil {
		t.Fatal(err)
	}
	if err := send(named("Refund")); err != nil {
		t.Fatal(err)
	}
	goOn := db.StopBeats()
	t.Cleanup(goOn)
	if err := server.Tool("pg_restore", "--clean", "--if-exists", "--exit-on-error", "--single-transaction", "--dbname="+dsn, dump); err != nil {
		t.Fatal(err)
	}
	if err := sql(t.Context(), dsn, `INSERT INTO hf_route (lane, source, kind, endpoint) SELECT lane, source, kind, 'Cancel' FROM hf_route`); err != nil {
		t.Fatal(err)
	}
	keyed := named("Refund")
	keyed.OrderingKey = "k"
	for what, m := range map[string]holdfast.Message{"by one statement": named("Refund"), "by several": keyed} {
		if err := send(m); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("before the node knows, %s: %v", what, err)
		}
	}
	goOn()
	waittest.Until(t, "it goes on", func() bool { return send(named("Refund")) == nil })
	if got := ask[string](t, dsn, `SELECT string_agg(r.endpoint, ' ' ORDER BY m.seq) FROM hf_message AS m JOIN hf_route AS r USING (route)`); got != "Order Refund" {
		t.Errorf("the database has %s", got)
	}
	if db.Gap() == nil {
		t.Error("the node tells of nothing")
	}
	if got := until(t, db, 2); len(got) != 2 || got[1].Message.Endpoint != "Refund" {
		t.Errorf("it hands out %v", got)
	}
}

// F1-120: what the old primary has written, and the new one never had, is not
// acknowledged by what the new one says of its standbys. Commits wait for a
// standby that is promoted; somebody ends their wait; and the server that is
// asked then is the other one, of which the node does not know yet.
func TestTwoServersDoNotProveACommit(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := primary.Database(t)
	standby := primary.Standby(t, "other", pgtest.Options{NoSync: true})
	both, err := standby.Both(primary, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, both, postgres.Options{Timeout: 30 * time.Second})
	if err := primary.Exec("postgres", `ALTER SYSTEM SET synchronous_standby_names = 'other'`, `SELECT pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
	acknowledged(t, db, 1) // its names are known
	goOn := db.StopBeats() // nobody meets the new primary before the answers are judged
	t.Cleanup(goOn)
	cutOff(t, primary, standby)
	type answer struct {
		id  holdfast.ID
		err error
	}
	answers := make(chan answer, 2)
	send := func(id holdfast.ID) {
		r, err := db.Enqueue(context.WithoutCancel(t.Context()), simple(id))
		if err == nil {
			id = r[0].ID
		}
		answers <- answer{id, err}
	}
	go send("") // by one statement
	go func() { // by several
		id := holdfast.ID("asked-of-two")
		answers <- answer{id, db.Do(context.WithoutCancel(t.Context()), func(ctx context.Context, tx *postgres.Tx) error {
			_, err := tx.Enqueue(ctx, simple(id))
			return err
		})}
	}()
	waittest.Until(t, "both commits wait", func() bool {
		return count(t, dsn, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()`) >= 2
	})
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	goOn()
	waittest.Until(t, "both are answered", func() bool { // a beat that had begun may wait as well
		if err := sql(t.Context(), dsn, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()`); err != nil {
			t.Fatal(err)
		}
		return len(answers) == 2
	})
	for range 2 {
		a := <-answers
		switch {
		case a.err == nil && !has(t, db, a.id):
			t.Errorf("%s was acknowledged, and is not in the new history", a.id)
		case a.err != nil && !errors.Is(a.err, holdfast.ErrUnavailable) && !errors.Is(a.err, postgres.ErrUnknown):
			t.Error(a.err)
		}
	}
	settled(t, db)
	shut(t, db)
}

// F1-122: commits that hang are told, though the server answers questions.
func TestCommitsThatHangAreTold(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{NoSync: true, Settings: map[string]string{"synchronous_standby_names": "nobody"}})
	if err := primary.Exec("postgres", `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
	db := open(t, primary.Database(t), quick("n"))
	if d := db.Stalled(); d != 0 {
		t.Errorf("before, nothing has come back for %s", d)
	}
	if err := primary.Exec("postgres", `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`, `SELECT pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "it is told", func() bool { return db.Stalled() > 0 })
	if i, err := db.Server(t.Context()); err != nil || i.Waiting == 0 || i.SynchronousWith != "nobody" {
		t.Errorf("Server = %+v, %v", i, err)
	}
	if err := primary.Exec("postgres", `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "commits come back", func() bool { return db.Stalled() == 0 })
	shut(t, db)
}

// F1-126: a role that reads quotes in another way.
func TestARoleWithOldQuotes(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn := server.Database(t)
	role := "quotes_" + nameOf(t, dsn)
	if err := server.Exec(nameOf(t, dsn), `CREATE ROLE `+role+` LOGIN PASSWORD 'q' SUPERUSER`, `ALTER ROLE `+role+` SET standard_conforming_strings = off`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Exec("postgres", `DROP ROLE `+role) })
	db := open(t, as(t, dsn, role, "q"), postgres.Options{})
	acknowledged(t, db, 1)
	shut(t, db)
}

// F1-127: what a role may not see is told, and not guessed.
func TestARoleThatMayNotSeeOthers(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	if i, err := db.Server(t.Context()); err != nil || i.Blind {
		t.Errorf("a superuser: %+v, %v", i, err)
	}
	role := "blind_" + nameOf(t, dsn)
	if err := sql(t.Context(), dsn, `CREATE ROLE `+role+` LOGIN PASSWORD 'b'`, `GRANT ALL ON SCHEMA public TO `+role,
		`GRANT ALL ON ALL TABLES IN SCHEMA public TO `+role, `GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO `+role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sql(context.WithoutCancel(t.Context()), dsn, `DROP OWNED BY `+role, `DROP ROLE `+role)
	})
	blind := open(t, as(t, dsn, role, "b"), postgres.Options{})
	if i, err := blind.Server(t.Context()); err != nil || !i.Blind {
		t.Errorf("a role without pg_read_all_stats: %+v, %v", i, err)
	}
	shut(t, blind)
}

// F1-120: an asynchronous standby is promoted, the address leads to it, and the
// store's connections stay at the old primary, which answers. A caller whose own
// connection is at the new one is refused only until the store has looked.
func TestACallerAtALaterServerHasTheStoreLook(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := primary.Database(t)
	standby := primary.Standby(t, "other", pgtest.Options{NoSync: true})
	p, through := newProxy(t, dsn)
	db := open(t, through, quick("n"))
	acknowledged(t, db, 1)
	cutOff(t, primary, standby)
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	p.leadTo(t, standby.DSN(nameOf(t, dsn)))
	waittest.Until(t, "a caller at the new server is served", func() bool {
		err := joined(t, db, standby.DSN(nameOf(t, dsn)))
		if err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	if err := joined(t, db, dsn); !errors.Is(err, holdfast.ErrUnavailable) || !mentions(err, "an old primary") {
		t.Errorf("a caller at the old primary: %v", err)
	}
	shut(t, db)
}
