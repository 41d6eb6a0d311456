package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// F1-121: both standbys of a primary that died are promoted, to timelines of the
// same number. A node writes to one of them only, and says that there are two; a
// caller's transaction at the other one is refused. When its own is gone, the node
// goes on at the other, and tells from when to when acknowledged work is not there.
func TestTwoStandbysArePromotedToOneTimeline(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := primary.Database(t)
	first, second := primary.Standby(t, "first", pgtest.Options{NoSync: true}), primary.Standby(t, "second", pgtest.Options{NoSync: true})
	all := addressOf(t, dsn, second, first, primary) // new connections try the second one first
	db := open(t, all, quick("n"))
	kept := acknowledged(t, db, 2)
	cutOff(t, primary, first)
	cutOff(t, primary, second)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.Promote(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the node enters the history of the first", func() bool {
		_, err := db.Enqueue(t.Context(), simple(""))
		return err == nil && db.Gap() != nil
	})
	if err := db.Acknowledge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Promote(); err != nil {
		t.Fatal(err)
	}
	firstDSN, secondDSN := first.DSN(nameOf(t, dsn)), second.DSN(nameOf(t, dsn))
	for name, server := range map[string]string{"first": firstDSN, "second": secondDSN} {
		if got := ask[string](t, server, `SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)`); got != "00000002" {
			t.Fatalf("the %s is at timeline %s", name, got)
		}
	}
	var gone []told
	for i := range 5 { // new connections, also while the old ones last
		if _, err := first.Terminate("holdfast n"); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "a message is acknowledged", func() bool {
			r, err := db.Enqueue(t.Context(), simple(holdfast.ID(fmt.Sprint("at-the-first-", i))))
			if err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
				t.Log(err)
			}
			return err == nil && len(r) == 1
		})
		gone = append(gone, acknowledged(t, db, 1)...)
	}
	for _, m := range gone {
		if count(t, firstDSN, `SELECT count(*) FROM hf_message WHERE id = $1`, raw(m.id)) != 1 {
			t.Errorf("%s was acknowledged, and is not at the first", m.id)
		}
	}
	if n := count(t, secondDSN, `SELECT count(*) FROM hf_message`); n != len(kept) {
		t.Errorf("%d messages at the second, want the %d of before", n, len(kept))
	}
	db.LookAround(t.Context())
	if list := db.Primaries(); len(list) != 2 {
		t.Errorf("the servers that take writes are %v", list)
	}
	if g := db.Gap(); g != nil {
		t.Errorf("beside the second it tells of %s", g)
	}
	if err := joined(t, db, secondDSN); !errors.Is(err, holdfast.ErrUnavailable) || !mentions(err, "both promoted") {
		t.Errorf("a caller's transaction at the second: %v", err)
	}
	if err := joined(t, db, firstDSN); err != nil {
		t.Errorf("a caller's transaction at the first: %v", err)
	}

	// Another node has opened the second, and people know of its history.
	other := open(t, secondDSN, quick("other"))
	if err := other.Acknowledge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is, was := incarnationOf(t, other), incarnationOf(t, db); is == was {
		t.Errorf("sites see the same history %q at both", is)
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the node goes on at the second, and says so", func() bool {
		_, err := db.Enqueue(t.Context(), simple(""))
		return err == nil && db.Gap() != nil
	})
	g := db.Gap()
	for _, m := range gone {
		if m.asked.Before(g.From) || m.asked.After(g.To) {
			t.Errorf("%s was asked for at %s, acknowledged and is gone; the node says from %s to %s", m.id, m.asked, g.From, g.To)
		}
	}
	if g.Was == g.Now || !mentions(errors.New(g.Was), "timeline 2 (branch ") || !mentions(errors.New(g.Now), "timeline 2 (branch ") {
		t.Errorf("it was %q and is %q; want two branches of timeline 2", g.Was, g.Now)
	}
	for _, m := range kept {
		if !has(t, db, m.id) {
			t.Errorf("%s is not in the new history", m.id)
		}
	}
	if err := db.Acknowledge(t.Context()); err != nil || db.Gap() != nil {
		t.Errorf("Acknowledge: %v, and it tells of %v", err, db.Gap())
	}
	settled(t, db)
	if g := db.Gap(); g != nil {
		t.Errorf("it is acknowledged, and the node tells of %s", g)
	}
	audit(t, db)
	shut(t, other)
	shut(t, db)
}

// addressOf names several servers, in the order in which they are tried.
func addressOf(t testing.TB, dsn string, servers ...*pgtest.Server) string {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	hosts := ""
	for i, s := range servers {
		one, err := pgx.ParseConfig(s.DSN(c.Database))
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			hosts += ","
		}
		hosts += fmt.Sprintf("%s:%d", one.Host, one.Port)
	}
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", c.User, c.Password, hosts, c.Database)
}

// The name of a branch outlives restarts, and all nodes read the same one.
func TestABranchHasOneName(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	const row = `SELECT value FROM hf_meta WHERE key = 'branch'`
	a := open(t, dsn, quick("a"))
	was := ask[string](t, dsn, row)
	b := open(t, dsn, quick("b"))
	shut(t, a)
	shut(t, b)
	a = opened(t, dsn, quick("a"))
	if is := ask[string](t, dsn, row); is != was || is == "" {
		t.Errorf("the branch was %q and is %q", was, is)
	}
	if g := a.Gap(); g != nil {
		t.Errorf("after a restart it tells of %s", g)
	}
}
