package sqlwrite_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
	"github.com/holdfast-mq/holdfast/internal/mariatest"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
)

const booking = "insert into orders (id) values (:_id)"

// F1-101, F1-105: whatever a trigger raises about the login, the database or
// the server is about its message, which is parked; the lane goes on. What
// nobody knows is, too.
func TestWhatATriggerRaisesIsItsMessages(t *testing.T) {
	t.Parallel()
	servers(t, func(t testing.TB, p *place) {
		p.exec(t, "create table orders (id varchar(80) primary key, raises varchar(20))")
		want := map[string]string{ // by what the trigger raises
			"3D000": "no_database", "28000": "credentials_refused", "28P01": "credentials_refused", "25006": "read_only",
			"CUST1": "raised", "U0001": "raised", "20000": "raised", "2D000": "raised", "99999": "raised", "02000": "raised",
		}
		if p.driver == "mysql" {
			want = map[string]string{
				"1044": "no_database", "1049": "no_database", "1045": "raised", "1129": "credentials_refused", "1290": "read_only", "1836": "read_only",
				"02000": "raised", "99999": "raised", "HY000": "raised", "28000": "raised", "1": "raised",
			}
		}
		p.raises(t, want)
		w := p.writer(t, map[string]string{"Book": "insert into orders (id, raises) values (:_id, :raises)"})
		for raised, code := range want {
			fails(t, second(w.Deliver(t.Context(), message("Book", `{"raises":"`+raised+`"}`))), holdfast.Permanent, code, false)
			deliver(t, w, message("Book", `{"raises":null}`))
		}
		if p.driver == "postgres" { // at the commit, too
			p.exec(t, "create constraint trigger late after insert on orders deferrable initially deferred for each row when (new.raises like '%late') execute function raising()")
			fails(t, second(w.Deliver(t.Context(), message("Book", `{"raises":"28000late"}`))), holdfast.Permanent, "credentials_refused", false)
			fails(t, second(w.Deliver(t.Context(), message("Book", `{"raises":"CUST1late"}`))), holdfast.Permanent, "raised", false)
		}
		deliver(t, w, message("Book", `{"raises":null}`))
	})
}

// raises gives orders a trigger that raises what a column says.
func (p *place) raises(t testing.TB, known map[string]string) {
	t.Helper()
	if p.driver == "postgres" {
		p.exec(t, "create function raising() returns trigger language plpgsql as $$ begin raise exception 'on purpose' using errcode = left(new.raises, 5); end $$")
		p.exec(t, "create trigger now before insert on orders for each row when (new.raises not like '%late') execute function raising()")
		return
	}
	var b strings.Builder
	b.WriteString("create trigger now before insert on orders for each row begin ")
	for what := range known {
		signal := "sqlstate '" + what + "' set message_text = 'on purpose'"
		if len(what) < 5 {
			signal = "sqlstate 'HY000' set mysql_errno = " + what
		}
		fmt.Fprintf(&b, "if new.raises = '%s' then signal %s; end if; ", what, signal)
	}
	b.WriteString("end")
	p.exec(t, b.String())
}

// F1-108: a statement of the configuration that fails by its own names fails
// without any message: the lane is held, and no message is charged or parked.
// One of a payload is the message's own.
func TestAStatementThatFailsByItsNamesHoldsTheLane(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		p.exec(t, "create table orders (id varchar(80) primary key)")
		w := p.writer(t, map[string]string{
			"Book": booking, "Wrong": "insert into orders (id) vales (:_id)", "NoTable": "insert into nowhere (id) values (:_id)", "NoColumn": "insert into orders (nothing) values (:_id)",
		}, func(c *sqlwrite.Config) { c.Raw = true })
		for endpoint, word := range map[string]string{"Wrong": "vales", "NoTable": "nowhere", "NoColumn": "nothing"} {
			fails(t, second(w.Deliver(t.Context(), message(endpoint, `{}`))), holdfast.LaneFault, "bad_sql", false, word)
		}
		fails(t, second(w.Deliver(t.Context(), message("Any", `{"sql":"insert into nowhere (id) values (:_id)"}`))), holdfast.Permanent, "bad_sql", false, "nowhere")
		p.exec(t, "alter table orders rename to away")
		fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.LaneFault, "bad_sql", false, "orders")
		p.exec(t, "alter table away rename to orders")
		deliver(t, w, message("Book", `{}`))
	})
}

// F1-108: while a table is swapped, messages are delivered or wait.
func TestNoMessageIsParkedWhileATableIsSwapped(t *testing.T) {
	t.Parallel()
	servers(t, func(t testing.TB, p *place) { // SQLite has one who writes at a time
		p.exec(t, "create table orders (id varchar(80) primary key)")
		w := p.writer(t, map[string]string{"Book": booking})
		tried := make(chan struct{}) // after each message
		var all sync.WaitGroup
		all.Go(func() {
			for names := []string{"orders", "away"}; ; names[0], names[1] = names[1], names[0] {
				_, open := <-tried
				if !open && names[0] == "orders" {
					return
				}
				if _, err := p.db.ExecContext(t.Context(), "alter table "+names[0]+" rename to "+names[1]); err != nil {
					t.Error(err)
				}
			}
		})
		done, held := 0, 0
		for range 200 {
			err := second(w.Deliver(t.Context(), message("Book", `{}`)))
			select {
			case tried <- struct{}{}:
			default: // it is busy with the swap
			}
			switch f := holdfast.AsFailure(err); {
			case err == nil:
				done++
			case f.Outcome == holdfast.LaneFault && f.Code == "bad_sql":
				held++
			default:
				t.Errorf("got %v %s: %v", f.Outcome, f.Code, err)
			}
		}
		close(tried)
		all.Wait()
		t.Logf("%d delivered, %d held", done, held)
		if got := p.one(t, "select count(*) from orders"); got != fmt.Sprint(done) {
			t.Errorf("got %s rows, want %d", got, done)
		}
	})
}

// limited is a user of MariaDB without the rights of an administrator, and the
// DSN of a database in his name.
func limited(t testing.TB, s *mariatest.Server, name, database string) string {
	t.Helper()
	db := newPlace(t, "mysql", "", "mysql", s.DSN("")).db
	for _, text := range []string{
		"create database if not exists " + database, "create or replace user " + name + "@'127.0.0.1' identified by 'x'", "grant all on " + database + ".* to " + name + "@'127.0.0.1'",
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	c, err := mysql.ParseDSN(s.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	c.User, c.Passwd = name, "x"
	return c.FormatDSN()
}

// F1-100: a writer is demoted while connections to it are open, and its
// address leads to another: the first that notices holds the lane, and the
// next attempt, which is the probe, is made over a new connection.
func TestADemotedWriterIsLeft(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(t testing.TB) (before, behind *place, demote string){
		"PostgreSQL": func(t testing.TB) (before, behind *place, demote string) {
			t.Helper()
			places := make([]*place, 2)
			for i, s := range []*pgtest.Server{pgtest.Start(t, pgtest.Options{NoSync: true}), pgtest.Shared(t)} {
				if err := s.Exec("postgres", "create role demoted login superuser password 'x'", "create database demoted owner demoted"); err != nil {
					t.Fatal(err)
				}
				u, err := url.Parse(s.DSN("demoted"))
				if err != nil {
					t.Fatal(err)
				}
				u.User = url.UserPassword("demoted", "x")
				places[i] = newPlace(t, "postgres", u.String(), "pgx", u.String())
			}
			t.Cleanup(func() {
				_ = places[1].db.Close()
				if err := pgtest.Shared(t).Exec("postgres", "drop database demoted with (force)", "drop role demoted"); err != nil {
					t.Error(err)
				}
			})
			return places[0], places[1], "alter system set default_transaction_read_only = on"
		},
		"MariaDB": func(t testing.TB) (before, behind *place, demote string) {
			t.Helper()
			places, database := make([]*place, 2), maria.Database(t)
			for i, s := range []*mariatest.Server{mariatest.Start(t), maria} {
				dsn := limited(t, s, "demoted", database)
				places[i] = newPlace(t, "mysql", dsn, "mysql", s.DSN(database))
			}
			return places[0], places[1], "set global read_only = 1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, behind, demote := set(t)
			for _, p := range []*place{before, behind} {
				p.exec(t, "create table orders (id varchar(80) primary key)")
			}
			address := newProxy(t, before.address(t))
			w := before.writer(t, map[string]string{"Book": booking}, func(c *sqlwrite.Config) { c.DSN = before.at(t, address.listener.Addr().String(), "") })
			var all sync.WaitGroup
			for range 8 { // so that there are several connections
				all.Go(func() { deliver(t, w, message("Book", `{}`)) })
			}
			all.Wait()
			before.exec(t, demote)
			if name == "PostgreSQL" {
				before.exec(t, "select pg_reload_conf()")
				until(t, func() bool {
					return holdfast.AsFailure(second(w.Deliver(t.Context(), message("Book", `{}`)))).Code == "read_only"
				})
			}
			fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.LaneFault, "read_only", false)
			if err := w.Ping(t.Context()); holdfast.AsFailure(err).Code != "read_only" {
				t.Errorf("a ping says %v", err)
			}
			address.lead(behind.address(t))
			for range 10 {
				deliver(t, w, message("Book", `{}`))
			}
			if got := behind.one(t, "select count(*) from orders"); got != "10" {
				t.Errorf("got %s rows in the new writer, want 10", got)
			}
		})
	}
}

// F1-104: what keeps a connection from its first statement charges no message.
func TestWhatComesBeforeAStatementChargesNobody(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	between := pgtest.Bouncer(t, server, pgtest.Transaction)
	p := postgresPlace(t, server)
	p.exec(t, "create table orders (id varchar(80) primary key)")
	through := between.Through(t, p.dsn)
	nowhere := strings.Replace(through, "/test_", "/nowhere_", 1)
	for dsn, words := range map[string]string{
		nowhere: "", through + "&options=-c%20deadlock_timeout%3D3s": "unsupported startup parameter",
	} {
		w := p.writer(t, map[string]string{"Book": booking}, func(c *sqlwrite.Config) { c.DSN = dsn })
		fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.Unreachable, "server_error", false, "08P01", words)
	}
	w := p.writer(t, map[string]string{"Book": booking}, func(c *sqlwrite.Config) { c.DSN = through })
	deliver(t, w, message("Book", `{}`))

	// MariaDB: a user who may have no more connections.
	m := mariaPlace(t, maria)
	dsn := limited(t, maria, "lonely", strings.TrimPrefix(m.dsn[strings.LastIndex(m.dsn, "/"):], "/"))
	m.exec(t, "alter user lonely@'127.0.0.1' with max_user_connections 1")
	m.exec(t, "create table orders (id varchar(80) primary key)")
	first := newPlace(t, "mysql", dsn, "mysql", dsn)
	first.exec(t, "do 1") // and the pool of database/sql keeps it
	w = m.writer(t, map[string]string{"Book": booking}, func(c *sqlwrite.Config) { c.DSN = dsn })
	fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.Unreachable, "too_many_connections", false, "1226")
	if err := first.db.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return second(w.Deliver(t.Context(), message("Book", `{}`))) == nil })
}

// F1-110: a server without TLS and a DSN that asks for it never agree by
// waiting.
func TestAServerWithoutTLSIsALaneFault(t *testing.T) {
	t.Parallel()
	servers(t, func(t testing.TB, p *place) {
		dsn := strings.Replace(p.dsn, "sslmode=disable", "sslmode=require", 1)
		if p.driver == "mysql" {
			dsn += "?tls=skip-verify"
		}
		if dsn == p.dsn {
			t.Fatalf("%s asks for no TLS", dsn)
		}
		w := p.writer(t, map[string]string{"Book": booking}, func(c *sqlwrite.Config) { c.DSN = dsn })
		fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.LaneFault, "tls_failed", false, "has no TLS")
	})
}

// F1-112: MariaDB says how large a value may be. A larger one is refused
// before it is sent; what fits arrives, to the last byte that may.
func TestALargeValueIsRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	p := mariaPlace(t, maria)
	p.exec(t, "create table notes (id varchar(80) primary key, note longtext)")
	var most int
	if err := p.db.QueryRowContext(t.Context(), "select @@max_allowed_packet").Scan(&most); err != nil {
		t.Fatal(err)
	}
	between := newProxy(t, p.address(t))
	w := p.writer(t, map[string]string{"Note": "insert into notes (id, note) values (:_id, :note)"}, func(c *sqlwrite.Config) {
		c.DSN = p.at(t, between.listener.Addr().String(), "")
	})
	m := message("Note", `{"note":"`+strings.Repeat("x", most)+`"}`)
	deliver(t, w, m)
	if got := p.one(t, "select length(note) from notes"); got != fmt.Sprint(most) {
		t.Errorf("got %s bytes, want %d", got, most)
	}
	before := between.sent.Load()
	m.Payload = []byte(`{"note":"` + strings.Repeat("x", most+1) + `"}`)
	fails(t, second(w.Deliver(t.Context(), m)), holdfast.Permanent, "bad_value", false, fmt.Sprint(most))
	if sent := between.sent.Load() - before; sent > 10_000 {
		t.Errorf("%d bytes were sent", sent)
	}
}

// F1-113: what a statement that has failed leaves behind where the database is
// not atomic is marked: a table without transactions, a procedure that commits.
func TestWhatAFailureLeavesBehindIsMarked(t *testing.T) {
	t.Parallel()
	p := mariaPlace(t, maria)
	for _, text := range []string{
		"create table whole (id varchar(80) primary key)", "create table parts (id varchar(80) primary key) engine = MyISAM",
		"create procedure refusing() begin insert into whole values ('refusing'); signal sqlstate '45000'; end",
		"create procedure committing() begin insert into whole values ('committing'); commit; signal sqlstate '45000'; end",
	} {
		p.exec(t, text)
	}
	w := p.writer(t, map[string]string{
		"Whole": "insert into whole values ('a'), ('a')", "Parts": "insert into parts values ('a'), ('a')", "Refusing": "call refusing()", "Committing": "call committing()",
	})
	for endpoint, c := range map[string]struct {
		code, rows string
		maybe      bool
	}{
		"Whole": {"duplicate", "0", false}, "Parts": {"duplicate", "1", true}, "Refusing": {"raised", "0", false}, "Committing": {"raised", "1", true},
	} {
		p.exec(t, "delete from whole")
		fails(t, second(w.Deliver(t.Context(), message(endpoint, `{}`))), holdfast.Permanent, c.code, c.maybe)
		if got := p.one(t, "select (select count(*) from whole) + (select count(*) from parts where '"+endpoint+"' = 'Parts')"); got != c.rows {
			t.Errorf("%s: got %s rows, want %s", endpoint, got, c.rows)
		}
	}
}
