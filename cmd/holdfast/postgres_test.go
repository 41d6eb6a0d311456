package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// sharing is a node that shares a database, as a process of its own.
func sharing(t *testing.T, dsn, id, more string) *child {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "store"), dsn+"\n")
	c := &child{t: t, address: freeAddress(t)}
	c.args = serveArgs(t, dir, id, fmt.Sprintf(`
node: {id: %s, source: shop}
listen: %s
store: {file: store}
lease: 1s
log: {level: warn}
%s`, id, c.address, more))
	t.Cleanup(c.kill)
	return c
}

// succeeds runs a command that must end well, and returns what it printed.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := command(t, args...)
	if code != exitOK {
		t.Fatalf("holdfast %s: exit code %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

func (p *child) running() *child {
	p.t.Helper()
	p.start()
	p.ready()
	return p
}

// The store is a setting: two nodes on one database are one outbox and one
// inbox. What one accepts the other delivers, also when the first is killed.
func TestTwoNodesShareADatabase(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	write(t, secret, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	receiver := &child{t: t, address: freeAddress(t)}
	receiver.args = serveArgs(t, dir, "receiver", fmt.Sprintf(`
node: {id: receiver}
listen: %s
data: data
receive: {secrets: {shop: {file: %s}}, endpoints: {Order: {keep: true}}}
`, receiver.address, secret))
	t.Cleanup(receiver.kill)
	receiver.running()
	more := fmt.Sprintf("destinations: {till: {url: %q, secret: {file: %s}}}\nreceive: {secrets: {shop: {file: %s}}, endpoints: {Order: {keep: true}}}\n",
		receiver.url(), secret, secret)
	a, b := sharing(t, dsn, "a", more).running(), sharing(t, dsn, "b", more).running()

	// What a accepts b knows, and one of them delivers it.
	id := strings.TrimSpace(succeeds(t, "send", "till", "Order", `{"n":1}`, "--url", a.url()))
	id = strings.Fields(id)[0]
	eventually(t, "the message arrives", func() bool {
		return strings.Contains(succeeds(t, "messages", "show", id, "--url", b.url()), "delivered")
	})
	if got := succeeds(t, "inbox", "ls", "--url", receiver.url()); !strings.Contains(got, id) {
		t.Errorf("the receiver has\n%s\nwant %s in it", got, id)
	}

	// A node that is killed leaves nothing behind.
	second := strings.Fields(succeeds(t, "send", "till", "Order", `{"n":2}`, "--url", a.url()))[0]
	a.kill()
	eventually(t, "the other node delivers", func() bool {
		return strings.Contains(succeeds(t, "messages", "show", second, "--url", b.url()), "delivered")
	})

	// doctor sees both kinds of things, and changes nothing.
	report, _, _ := command(t, "doctor", "--config", b.args[len(b.args)-1], "--json")
	for _, want := range []string{
		`"store":"postgres://holdfast:[secret]@127.0.0.1`, `"name":"tables","status":"ok"`, `"name":"commits","status":"ok"`, `"name":"nodes","status":"ok"`,
		`"name":"address","status":"ok"`, `"name":"parked","status":"ok"`, `"failing":0`,
	} {
		if !strings.Contains(report, want) {
			t.Errorf("doctor said\n%s\nwant %s in it", report, want)
		}
	}
	if strings.Contains(report, password(t, dsn)) || strings.Contains(report, "data folder") {
		t.Errorf("doctor said\n%s", report)
	}

	// A token that is made beside running nodes holds for them.
	if out := succeeds(t, "tokens", "create", "first", "--config", a.args[len(a.args)-1]); !strings.HasPrefix(out, "hf_") {
		t.Errorf("tokens create said %q", out)
	}
	if out := succeeds(t, "tokens", "ls", "--url", b.url()); !strings.Contains(out, "first") {
		t.Errorf("tokens ls said %q", out)
	}

	for path, wants := range map[string][]string{
		"/metrics":     {"holdfast_postgres_nodes ", "holdfast_postgres_dead_rows ", "holdfast_postgres_oldest_transaction_seconds ", "!holdfast_disk", "!holdfast_wal", "!holdfast_backup"},
		"/_rf/health":  {`"database"`, `"nodes"`, "PostgreSQL ", "alive: ", "!\"disk\"", "!\"backup\""},
		"/healthz":     {"ok"},
		"/v1/messages": {id, second},
	} {
		eventually(t, path, func() bool {
			got := get(t, b.url()+path)
			for _, want := range wants {
				if unwanted, not := strings.CutPrefix(want, "!"); not == strings.Contains(got, strings.TrimPrefix(want, "!")) {
					t.Logf("%s does not fit %q: %s", path, want, unwanted)
					return false
				}
			}
			return true
		})
	}
	refused(t, exitFailure, []string{"the database is PostgreSQL: back it up with its own tools"}, "backup", dir, "--url", b.url())
	if got := b.tail() + a.tail(); strings.Contains(got, password(t, dsn)) || !strings.Contains(got, "[secret]@127.0.0.1") {
		t.Errorf("the nodes said\n%s", got)
	}
	for _, p := range []*child{b, receiver} {
		if err := p.end(); err != nil {
			t.Errorf("stop: %v\n%s", err, p.tail())
		}
	}
}

func password(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := u.User.Password()
	return secret
}

func changed(t *testing.T, dsn string, change func(u *url.URL)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

// What cannot work is told in words that help, and changes nothing.
func TestBadStores(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "each of its processes runs one command and ends")
	server := pgtest.Shared(t)
	fresh := server.Database(t)
	name := strings.TrimPrefix(path(t, fresh), "/")
	if err := server.Exec(name, `CREATE ROLE nothing_allowed LOGIN PASSWORD 'poor'`); err != nil {
		t.Fatal(err)
	}
	newer := server.Database(t)
	succeeds(t, "migrate", "up", "--store", newer)
	if err := server.Exec(strings.TrimPrefix(path(t, newer), "/"), `UPDATE hf_meta SET value = '999' WHERE key = 'schema'`); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dsn   string
		code  int
		wants []string
	}{
		"nobody there":       {changed(t, fresh, func(u *url.URL) { u.Host = "127.0.0.1:1" }), exitFailure, []string{"cannot be reached", "127.0.0.1:1"}},
		"no such database":   {changed(t, fresh, func(u *url.URL) { u.Path = "/nowhere" }), exitNotFound, []string{"nowhere", "create it"}},
		"the wrong password": {changed(t, fresh, func(u *url.URL) { u.User = url.UserPassword("nothing_allowed", "rich") }), exitRefused, []string{"check the user and password"}},
		"a missing right":    {changed(t, fresh, func(u *url.URL) { u.User = url.UserPassword("nothing_allowed", "poor") }), exitRefused, []string{`GRANT CREATE ON SCHEMA "public" TO "nothing_allowed"`}},
		"a newer schema":     {newer, exitUsage, []string{"database of a newer release", "number 999"}},
		"no URL":             {"postgres://u:hunter2%zz@127.0.0.1/d", exitUsage, []string{"is no URL"}},
	} {
		for _, args := range [][]string{
			{"serve", "--listen", "127.0.0.1:0", "--store", c.dsn},
			{"migrate", "up", "--store", c.dsn},
			{"tokens", "ls", "--store", c.dsn},
		} {
			if name == "nobody there" && args[0] == "serve" {
				continue // it waits: TestAStartWaitsForItsDatabase
			}
			_, stderr, code := command(t, args...)
			if code != c.code {
				t.Errorf("%s: %s: exit code %d, want %d; it said: %s", name, args[0], code, c.code, stderr)
			}
			for _, want := range c.wants {
				if !strings.Contains(stderr, want) {
					t.Errorf("%s: %s said %q, want it to hold %q", name, args[0], stderr, want)
				}
			}
			for _, leak := range []string{"hunter2", "rich", "poor", password(t, fresh)} {
				if strings.Contains(stderr, leak) {
					t.Errorf("%s: %s tells the password: %s", name, args[0], stderr)
				}
			}
		}
	}
	if out, _, code := command(t, "doctor", "--store", fresh); code == exitFailing || !strings.Contains(out, "tables: none yet") {
		t.Errorf("doctor of an empty database (%d):\n%s", code, out)
	}
	if out, _, code := command(t, "doctor", "--store", newer); code != exitFailing || !strings.Contains(out, "FAIL  tables: database of a newer release") {
		t.Errorf("doctor of a newer database (%d):\n%s", code, out)
	}
	if out, _, code := command(t, "migrate", "status", "--store", fresh); code != exitWarnings || !strings.Contains(out, "no tables yet") {
		t.Errorf("after all that the database has %q (%d)", out, code)
	}
	refused(t, exitUsage, []string{"number 999"}, "migrate", "status", "--store", newer)
}

func path(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u.Path
}

// Two nodes that share a name would share a lease: the second does not start.
func TestTwoNodesOfOneName(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	first, second := sharing(t, dsn, "twin", "").running(), sharing(t, dsn, "twin", "")
	refused(t, exitConflict, []string{`another node of this name is running: "twin" is process`, "give each node a name of its own"}, second.args[1:]...)
	if err := first.end(); err != nil {
		t.Errorf("stop: %v\n%s", err, first.tail())
	}
	if err := second.running().end(); err != nil { // the first said goodbye
		t.Errorf("stop: %v\n%s", err, second.tail())
	}
}

// The guide's rights suffice: a node that may change rows and no tables.
func TestANodeNeedsNoRightOnTables(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn := server.Database(t)
	name := strings.TrimPrefix(path(t, dsn), "/")
	if err := server.Exec(name,
		`CREATE ROLE rows_only LOGIN PASSWORD 'rows'`,
		`ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO rows_only`,
		`ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO rows_only`); err != nil {
		t.Fatal(err)
	}
	limited := changed(t, dsn, func(u *url.URL) { u.User = url.UserPassword("rows_only", "rows") })
	succeeds(t, "migrate", "up", "--store", dsn)
	n := sharing(t, limited, "limited", "").running()
	id := strings.Fields(succeeds(t, "send", "self", "Hello", "1", "--url", n.url()))[0]
	eventually(t, "the message arrives", func() bool {
		return strings.Contains(succeeds(t, "inbox", "ls", "--url", n.url()), id)
	})
	succeeds(t, "inbox", "done", id, "--url", n.url())
	if got := get(t, n.url()+"/_rf/health"); !strings.Contains(got, `"status":"ok"`) {
		t.Errorf("health %s", got)
	}
	if err := n.end(); err != nil {
		t.Errorf("stop: %v\n%s", err, n.tail())
	}
}

// A database that is away fails readiness, not the process: a restart of the
// node would not help. It goes on by itself.
func TestADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	n := sharing(t, server.Database(t), "alone", "").running()
	if err := server.Stop(pgtest.Immediate); err != nil {
		t.Fatal(err)
	}
	eventually(t, "readiness fails", func() bool { return strings.Contains(get(t, n.url()+"/readyz"), "database not available") })
	if got := get(t, n.url()+"/healthz"); got != "ok\n" {
		t.Errorf("/healthz said %q", got)
	}
	if got := get(t, n.url()+"/_rf/health"); !strings.Contains(got, `"name":"database","status":"failing"`) {
		t.Errorf("/_rf/health said %s", got)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready again", func() bool { return get(t, n.url()+"/readyz") == "ready\n" })
	succeeds(t, "send", "self", "Hello", "1", "--url", n.url())
	if err := n.end(); err != nil {
		t.Errorf("stop: %v\n%s", err, n.tail())
	}
}
