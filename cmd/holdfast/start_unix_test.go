//go:build unix

package main

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
)

// F1-122, F1-129: a start waits for a database that may come by itself, says what
// for, goes on when it is there, and can be stopped meanwhile. Supervisors have
// nothing to restart.
func TestAStartWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	does := func(statements ...string) func() error {
		return func() error { return server.Exec("postgres", append(statements, `SELECT pg_reload_conf()`)...) }
	}
	for _, c := range []struct {
		what         string
		begins, ends func() error
		says         string
	}{
		{"away", func() error { return server.Stop(pgtest.Fast) }, server.Start, "cannot be reached"},
		{"read-only", does(`ALTER SYSTEM SET default_transaction_read_only = on`), does(`SET default_transaction_read_only = off`, `ALTER SYSTEM RESET default_transaction_read_only`), "read-only"},
		{"commits that hang", does(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`), does(`ALTER SYSTEM RESET synchronous_standby_names`), "SyncRep"},
	} {
		node := sharing(t, server.Database(t), "a", "stop: 2s\ndrain: 0s\n")
		for _, stopped := range []bool{true, false} {
			if err := c.begins(); err != nil {
				t.Fatalf("%s: %v", c.what, err)
			}
			node.start()
			eventually(t, c.what+": it says what it waits for", func() bool { return strings.Contains(node.tail(), c.says) })
			if !strings.Contains(node.tail(), "the start waits") {
				t.Errorf("%s: it said\n%s", c.what, node.tail())
			}
			node.answersThatItWaits()
			if stopped {
				if err := node.ends(2*time.Second + 2*time.Second); err != nil {
					t.Errorf("%s: a stop meanwhile: %v\n%s", c.what, err, node.tail())
				}
			}
			if err := c.ends(); err != nil {
				t.Fatalf("%s: %v", c.what, err)
			}
		}
		eventually(t, c.what+": it is ready", func() bool { return get(t, node.url()+"/readyz") == "ready\n" })
		if err := node.end(); err != nil {
			t.Errorf("%s: stop: %v\n%s", c.what, err, node.tail())
		}
	}
}

// F1-122: a database that has no room for one more connection, and a standby that is
// promoted later, are waited for as one that is away.
func TestAStartWaitsForRoomAndForAPromotion(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Standby(t, "other", pgtest.Options{})
	dsn := primary.Database(t)
	name := strings.TrimPrefix(path(t, dsn), "/")
	if err := primary.Exec("postgres", `CREATE ROLE guest LOGIN PASSWORD 'guest' CONNECTION LIMIT 0`); err != nil {
		t.Fatal(err)
	}
	if err := primary.Exec(name, `GRANT ALL ON SCHEMA public TO guest`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, dsn, says string
		ends            func() error
	}{
		{"no room", changed(t, dsn, func(u *url.URL) { u.User = url.UserPassword("guest", "guest") }), "no free connection", func() error {
			return primary.Exec("postgres", `ALTER ROLE guest CONNECTION LIMIT 20`)
		}},
		{"a standby", standby.DSN(name), "standby", func() error { return errors.Join(primary.Stop(pgtest.Fast), standby.Promote()) }},
	} {
		node := sharing(t, c.dsn, "a", "stop: 2s\ndrain: 0s\n")
		node.start()
		eventually(t, c.what+": it says what it waits for", func() bool {
			return strings.Contains(node.tail(), "the start waits") && strings.Contains(node.tail(), c.says)
		})
		node.answersThatItWaits()
		if err := c.ends(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		eventually(t, c.what+": it is ready", func() bool { return get(t, node.url()+"/readyz") == "ready\n" })
		if err := node.end(); err != nil {
			t.Errorf("%s: stop: %v\n%s", c.what, err, node.tail())
		}
	}
}

// answersThatItWaits: a probe of liveness must not end a start that waits, and
// who sends messages learns that this one was not taken.
func (p *child) answersThatItWaits() {
	p.t.Helper()
	eventually(p.t, "/readyz says that it waits", func() bool {
		r, err := http.Get(p.url() + "/readyz")
		if err != nil {
			return false // it does not listen yet
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return err == nil && r.StatusCode == http.StatusServiceUnavailable && string(text) == "starting: waits for the database\n"
	})
	if got := get(p.t, p.url()+"/healthz"); got != "ok\n" {
		p.t.Errorf("/healthz said %q", got)
	}
	if got := <-p.submitsHanging(1); got != "unavailable" {
		p.t.Errorf("a caller got %s", got)
	}
}

// F1-129: a start does not wait for what a person has to mend.
func TestAStartDoesNotWaitForWhatAPersonMends(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	latin, foreign := "latin_"+strings.TrimPrefix(path(t, server.Database(t)), "/test_"), server.Database(t)
	if err := server.Exec("postgres", `CREATE DATABASE `+latin+` ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Exec("postgres", `DROP DATABASE `+latin+` WITH (FORCE)`) })
	if err := server.Exec(strings.TrimPrefix(path(t, foreign), "/"), `CREATE TABLE hf_message (other int)`); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		dsn  string
		code int
	}{
		"another encoding":   {changed(t, foreign, func(u *url.URL) { u.Path = "/" + latin }), exitUsage},
		"tables of others":   {foreign, exitUsage},
		"the wrong password": {changed(t, foreign, func(u *url.URL) { u.User = url.UserPassword("holdfast", "wrong") }), exitRefused},
	} {
		if _, stderr, code := command(t, "serve", "--listen", "127.0.0.1:0", "--store", c.dsn); code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s", what, code, c.code, stderr)
		}
	}
}
