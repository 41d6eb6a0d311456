package sqlwrite_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
	"github.com/holdfast-mq/holdfast/internal/mariatest"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// servers are the places that are reached over a network.
func servers(t *testing.T, test func(t testing.TB, p *place)) {
	t.Helper()
	everywhere(t, func(t testing.TB, p *place) {
		if p.driver != "sqlite" {
			test(t, p)
		}
	})
}

// at is the DSN of the same database at another address, or with another
// password.
func (p *place) at(t testing.TB, address, password string) string {
	t.Helper()
	if p.driver == "mysql" {
		c, err := mysql.ParseDSN(p.dsn)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			c.Passwd = password
		}
		if address != "" {
			c.Addr = address
		}
		return c.FormatDSN()
	}
	u, err := url.Parse(p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		u.User = url.UserPassword(u.User.Username(), password)
	}
	if address != "" {
		u.Host = address
	}
	return u.String()
}

func (p *place) address(t testing.TB) string {
	t.Helper()
	if p.driver == "mysql" {
		c, err := mysql.ParseDSN(p.dsn)
		if err != nil {
			t.Fatal(err)
		}
		return c.Addr
	}
	u, err := url.Parse(p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// SF-03: of two that wait for each other one is tried again.
func TestADeadlockIsTransient(t *testing.T) {
	t.Parallel()
	servers(t, func(t testing.TB, p *place) {
		p.exec(t, "create table pairs (id integer primary key, n integer)")
		p.exec(t, "insert into pairs values (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)")
		p.exec(t, map[string]string{
			"postgres": "create procedure both_rows() language plpgsql as $$ begin update pairs set n = n + 1 where id = 1; update pairs set n = n + 1 where id = 2; end $$",
			"mysql":    "create procedure both_rows() begin update pairs set n = n + 1 where id = 1; update pairs set n = n + 1 where id = 2; end",
		}[p.driver])
		p.dsn += map[string]string{"postgres": "&options=-c%20deadlock_timeout%3D3s", "mysql": "?innodb_lock_wait_timeout=30"}[p.driver]
		other, err := p.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Rollback() //nolint:errcheck // it may have ended
		// MariaDB lets the one fail that has changed less, PostgreSQL the one that looks first.
		if p.driver == "postgres" {
			if _, err := other.ExecContext(t.Context(), "set local deadlock_timeout = '60s'"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := other.ExecContext(t.Context(), "update pairs set n = n + 1 where id > 1"); err != nil {
			t.Fatal(err)
		}
		w := p.writer(t, map[string]string{"Both": "call both_rows()"})
		done := make(chan error, 1)
		go func() { done <- second(w.Deliver(t.Context(), message("Both", `{}`))) }()
		until(t, func() bool {
			_, err := p.db.ExecContext(t.Context(), "select n from pairs where id = 1 for update nowait")
			return err != nil
		})
		if _, err := other.ExecContext(t.Context(), "update pairs set n = n + 1 where id = 1"); err != nil {
			t.Fatalf("the test's own transaction was chosen: %v", err)
		}
		fails(t, <-done, holdfast.Transient, "deadlock", false, "eadlock")
		if err := other.Commit(); err != nil {
			t.Fatal(err)
		}
		deliver(t, w, message("Both", `{}`))
		if got := p.one(t, "select n from pairs where id = 1"); got != "2" {
			t.Errorf("got %s, want 2: one of each", got)
		}
	})
}

// waits counts the transactions that wait for a lock.
const waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"

// SF-03: so is one that waits too long, by the server's clock or by ours. One
// that waits for a file of SQLite has not begun.
func TestALockIsTransient(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		p.exec(t, "create table pairs (id integer primary key, n integer)")
		p.exec(t, "insert into pairs values (1, 0)")
		if p.driver == "postgres" {
			p.dsn += "&options=-c%20lock_timeout%3D200ms"
		}
		w := p.writer(t, map[string]string{"Add": "update pairs set n = n + 1 where id = 1"})
		other, err := p.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Rollback() //nolint:errcheck // it may have ended
		if _, err := other.ExecContext(t.Context(), "update pairs set n = n + 1 where id = 1"); err != nil {
			t.Fatal(err)
		}
		if p.driver != "sqlite" {
			fails(t, second(w.Deliver(t.Context(), message("Add", `{}`))), holdfast.Transient, "locked", false)
		}
		err = second(w.Deliver(soon(t, 100*time.Millisecond), message("Add", `{}`)))
		switch p.driver {
		case "sqlite":
			fails(t, err, holdfast.Unreachable, "locked", false)
		case "postgres":
			fails(t, err, holdfast.Transient, "timeout", false)
		case "mysql": // whose table may be one without transactions
			fails(t, err, holdfast.Transient, "timeout", true)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if err = second(w.Deliver(ctx, message("Add", `{}`))); p.driver != "mysql" {
			fails(t, err, holdfast.NotStarted, "canceled", false)
		}
		if err := other.Commit(); err != nil {
			t.Fatal(err)
		}
		deliver(t, w, message("Add", `{}`))
		if got := p.one(t, "select n from pairs"); got != "2" {
			t.Errorf("got %s, want 2", got)
		}
	})
}

// SF-03: and one whose snapshot is too old.
func TestAConflictOfSnapshotsIsTransient(t *testing.T) {
	t.Parallel()
	p := postgresPlace(t, pgtest.Shared(t))
	p.dsn += "&options=-c%20default_transaction_isolation%3Dserializable"
	p.exec(t, "create table pairs (id integer primary key, n integer)")
	p.exec(t, "insert into pairs values (1, 0)")
	w := p.writer(t, map[string]string{"Add": "update pairs set n = n + 1 where id = 1"})
	other, err := p.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.ExecContext(t.Context(), "update pairs set n = n + 1 where id = 1"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- second(w.Deliver(t.Context(), message("Add", `{}`))) }()
	until(t, func() bool { return p.one(t, waits) != "0" })
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	fails(t, <-done, holdfast.Transient, "serialization", false, "40001")
}

// SF-07: a server that is away costs no attempt, and connections that died
// with it cost none either.
func TestAServerThatIsAwayIsUnreachable(t *testing.T) {
	t.Parallel()
	pg, maria := pgtest.Start(t, pgtest.Options{NoSync: true}), mariatest.Start(t)
	for name, c := range map[string]struct {
		p           *place
		stop, start func() error
	}{
		"PostgreSQL": {postgresPlace(t, pg), func() error { return pg.Stop(pgtest.Fast) }, pg.Start},
		"MariaDB":    {mariaPlace(t, maria), maria.Stop, maria.Start},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := c.p
			p.exec(t, "create table orders (id varchar(80) primary key)")
			w := p.writer(t, map[string]string{"Book": "insert into orders (id) values (:_id)"})
			var all sync.WaitGroup
			for range 8 { // so that there are several idle connections
				all.Go(func() { deliver(t, w, message("Book", `{}`)) })
			}
			all.Wait()
			for _, step := range []func() error{c.stop, c.start} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			deliver(t, w, message("Book", `{}`)) // over a new one
			if err := c.stop(); err != nil {
				t.Fatal(err)
			}
			for range 10 {
				fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.Unreachable, "connection_refused", false, "connect to the database")
			}
			if err := w.Ping(t.Context()); err == nil {
				t.Error("a ping reaches it")
			}
			if err := c.start(); err != nil {
				t.Fatal(err)
			}
			deliver(t, w, message("Book", `{}`))
			if err := w.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			if got := p.one(t, "select count(*) from orders"); got != "10" {
				t.Errorf("got %s rows, want 10", got)
			}
		})
	}
}

// A server that ends while it works is transient, and nothing was done.
func TestAServerThatEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t, pgtest.Options{NoSync: true})
	p := postgresPlace(t, pg)
	p.exec(t, "create table pairs (id integer primary key, n integer)")
	p.exec(t, "insert into pairs values (1, 0)")
	w := p.writer(t, map[string]string{"Add": "update pairs set n = n + 1 where id = 1"})
	other, err := p.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback() //nolint:errcheck // its server is gone
	if _, err := other.ExecContext(t.Context(), "update pairs set n = n + 1 where id = 1"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- second(w.Deliver(t.Context(), message("Add", `{}`))) }()
	until(t, func() bool { return p.one(t, waits) != "0" })
	if err := pg.Stop(pgtest.Fast); err != nil {
		t.Fatal(err)
	}
	fails(t, <-done, holdfast.Transient, "shutting_down", false, "57P01")
}

// SF-03: what is wrong with the destination holds it, and parks no message.
func TestWhatIsWrongWithTheDestinationIsALaneFault(t *testing.T) {
	t.Parallel()
	servers(t, func(t testing.TB, p *place) {
		statements := map[string]string{"Book": "insert into orders (id) values (:_id)"}
		for name, c := range map[string]struct{ dsn, code string }{
			"wrong password": {p.at(t, "", "hunter2!?"), "credentials_refused"},
			"no such database": {map[string]string{
				"postgres": strings.Replace(p.dsn, "/test_", "/nowhere_", 1), "mysql": strings.Replace(p.dsn, "/test_", "/nowhere_", 1),
			}[p.driver], "no_database"},
		} {
			w := p.writer(t, statements, func(c2 *sqlwrite.Config) { c2.DSN = c.dsn })
			err := second(w.Deliver(t.Context(), message("Book", `{}`)))
			fails(t, err, holdfast.LaneFault, c.code, false)
			if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), p.password(t))) {
				t.Errorf("%s: the password is in %q", name, err)
			}
			if err := w.Ping(t.Context()); holdfast.AsFailure(err).Code != c.code {
				t.Errorf("%s: a ping says %v", name, err)
			}
			if got := w.Address(); strings.Contains(got, "hunter2") || !strings.HasPrefix(got, "127.0.0.1:") {
				t.Errorf("the address is %s", got)
			}
		}
	})
}

func (p *place) password(t testing.TB) string {
	t.Helper()
	if p.driver == "mysql" {
		c, err := mysql.ParseDSN(p.dsn)
		if err != nil {
			t.Fatal(err)
		}
		return c.Passwd
	}
	u, err := url.Parse(p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	return password
}

// A right that is missing is about the object: permanent. A server that takes
// no writes is about the destination.
func TestRightsAndReadOnlyServers(t *testing.T) {
	t.Parallel()
	statements := map[string]string{"Book": "insert into orders (id) values (:_id)"}
	p := postgresPlace(t, pgtest.Shared(t))
	p.exec(t, "create table orders (id varchar(80) primary key)")
	p.exec(t, "create role limited_writer login password 'x'")
	pg := p.db
	t.Cleanup(func() {
		if _, err := pg.ExecContext(context.Background(), "drop role limited_writer"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("limited_writer", "x")
	w := p.writer(t, statements, func(c *sqlwrite.Config) { c.DSN = u.String() })
	fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.Permanent, "denied", false)
	w.Close()
	p.exec(t, "alter role limited_writer connection limit 0")
	w = p.writer(t, statements, func(c *sqlwrite.Config) { c.DSN = u.String() })
	fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.Unreachable, "too_many_connections", false)
	w = p.writer(t, statements, func(c *sqlwrite.Config) { c.DSN += "&options=-c%20default_transaction_read_only%3Don" })
	fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.LaneFault, "read_only", false)

	p = mariaPlace(t, maria)
	p.exec(t, "create table orders (id varchar(80) primary key)")
	p.exec(t, "create or replace user limited_writer@'127.0.0.1' identified by 'x'")
	p.exec(t, "grant select on orders to limited_writer@'127.0.0.1'")
	c, err := mysql.ParseDSN(p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	c.User, c.Passwd = "limited_writer", "x"
	w = p.writer(t, statements, func(to *sqlwrite.Config) { to.DSN = c.FormatDSN() })
	fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.Permanent, "denied", false)
	w = p.writer(t, statements, func(to *sqlwrite.Config) { to.DSN = strings.Replace(c.FormatDSN(), c.DBName, "mysql", 1) })
	fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.LaneFault, "no_database", false)
	w = p.writer(t, statements, func(to *sqlwrite.Config) { to.DSN += "?tls=true" })
	fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.LaneFault, "tls_failed", false)
}

// What a trigger or procedure says is meant.
func TestWhatATriggerRaisesIsPermanent(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t testing.TB, p *place) {
		p.exec(t, "create table orders (id varchar(80) primary key)")
		for _, text := range map[string][]string{
			"sqlite": {"create trigger no_orders before insert on orders begin select raise(abort, 'the plant is shut'); end"},
			"postgres": {
				"create function no_orders() returns trigger language plpgsql as $$ begin raise exception 'the plant is shut'; end $$",
				"create trigger no_orders before insert on orders for each row execute function no_orders()",
			},
			"mysql": {"create trigger no_orders before insert on orders for each row signal sqlstate '45000' set message_text = 'the plant is shut'"},
		}[p.driver] {
			p.exec(t, text)
		}
		w := p.writer(t, map[string]string{"Book": "insert into orders (id) values (:_id)"})
		fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.Permanent, "raised", false, "the plant is shut")
		w = p.writer(t, map[string]string{"Book": "insert into orders (id) values (:_id)"}, func(c *sqlwrite.Config) { c.Excerpt = 0 })
		err := second(w.Deliver(t.Context(), message("Book", `{}`)))
		fails(t, err, holdfast.Permanent, "raised", false)
		if strings.Contains(err.Error(), "plant") {
			t.Errorf("got %q, want nothing of what the database says", err)
		}
	})
}

// SF-03: a file that is not there is not made, and one that is no database is
// told from one that is locked.
func TestFilesThatAreNoDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]string{filepath.Join(dir, "missing.db"): "no_database", text: "no_database", dir: "no_database"} {
		p := &place{driver: "sqlite", dsn: path}
		w := p.writer(t, map[string]string{"Book": "insert into orders (id) values (:_id)"})
		fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.LaneFault, code, false)
	}
	if _, err := os.Stat(filepath.Join(dir, "missing.db")); !os.IsNotExist(err) {
		t.Errorf("the file is there: %v", err)
	}
	replaced := sqlitePlace(t)
	replaced.exec(t, "pragma journal_mode = wal")
	replaced.exec(t, "create table orders (id text primary key)")
	w := replaced.writer(t, map[string]string{"Book": "insert into orders (id) values (:_id)"})
	deliver(t, w, message("Book", `{}`))
	_ = replaced.db.Close()
	if err := os.Rename(replaced.dsn, replaced.dsn+".old"); err != nil {
		t.Fatal(err)
	}
	fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.LaneFault, "no_database", false)
	p := sqlitePlace(t)
	p.exec(t, "create table orders (id text primary key)")
	if err := os.Rename(p.dsn, replaced.dsn); err != nil {
		t.Fatal(err)
	}
	deliver(t, w, message("Book", `{}`))
	if got := p.one(t, "select count(*) from orders"); got != "1" {
		t.Errorf("got %s rows in the file that took the other's place, want 1", got)
	}

	p = sqlitePlace(t)
	p.exec(t, "create table plants (id text primary key)")
	p.exec(t, "create table orders (id text primary key, plant text references plants)")
	w = p.writer(t, map[string]string{"Book": "insert into orders (id, plant) values (:_id, :plant)"})
	fails(t, second(w.Deliver(t.Context(), message("Book", `{"plant":"x"}`))), holdfast.Permanent, "constraint", false) // foreign keys count
}

// until waits for what the test has begun and the server shows.
func until(t testing.TB, holds func() bool) {
	t.Helper()
	waittest.Until(t, "the server shows it", holds)
}
