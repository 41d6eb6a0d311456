package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// refuse opens, and expects a refusal that a person can act on.
func refuse(t testing.TB, dsn string, want error, words ...string) {
	t.Helper()
	db, err := postgres.Open(t.Context(), dsn, postgres.Options{}.Relaxed())
	if err == nil {
		_ = db.Close()
	}
	if !errors.Is(err, want) {
		t.Errorf("Open: %v, want %v", err, want)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("Open: %v; the text lacks %q", err, w)
		}
	}
	u, bad := url.Parse(dsn)
	if password, ok := u.User.Password(); bad == nil && ok && strings.Contains(err.Error(), password) {
		t.Errorf("Open: %v; the text has the password", err)
	}
}

// with is a DSN with another part.
func with(t testing.TB, dsn string, change func(u *url.URL)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

func setting(name, value string) func(u *url.URL) {
	return func(u *url.URL) {
		q := u.Query()
		q.Set(name, value)
		u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // as PostgreSQL has it
	}
}

func TestWrongAddress(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	for what, c := range map[string]struct {
		dsn   string
		want  error
		words []string
	}{
		"no URL":                {"postgres://u:sec/ret@host/db", holdfast.ErrInvalid, []string{"postgres://user:password@host:5432/database"}},
		"no port":               {"postgres://u:sec@ret@host:port/db", holdfast.ErrInvalid, []string{"database address"}},
		"no port, in words":     {"host=h password=secret port=many", holdfast.ErrInvalid, []string{"invalid port"}},
		"nonsense":              {"secret nonsense", holdfast.ErrInvalid, []string{"database address"}},
		"no such TLS mode":      {with(t, dsn, setting("sslmode", "some")), holdfast.ErrInvalid, []string{"sslmode"}},
		"no such host":          {"postgres://u:secret@no.such.host.invalid/db", holdfast.ErrUnavailable, []string{"no.such.host.invalid", "cannot be reached"}},
		"nobody there":          {with(t, dsn, func(u *url.URL) { u.Host = "127.0.0.1:1" }), holdfast.ErrUnavailable, []string{"127.0.0.1:1", "refused"}},
		"wrong password":        {with(t, dsn, func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "secret") }), postgres.ErrRights, []string{"password"}},
		"no such database":      {with(t, dsn, func(u *url.URL) { u.Path = "/none" }), holdfast.ErrNotFound, []string{`"none" does not exist`}},
		"no such setting":       {with(t, dsn, setting("no_such_setting", "1")), holdfast.ErrInvalid, []string{"no_such_setting"}},
		"TLS that it lacks":     {with(t, dsn, setting("sslmode", "require")), holdfast.ErrUnavailable, []string{"TLS"}},
		"no such schema":        {with(t, dsn, setting("search_path", "nowhere")), postgres.ErrRights, []string{"CREATE SCHEMA"}},
		"no such session attrs": {with(t, dsn, setting("target_session_attrs", "best")), holdfast.ErrInvalid, []string{"target_session_attrs"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), c.dsn, postgres.Options{}.Relaxed())
			if !errors.Is(err, c.want) {
				t.Fatalf("Open: %v, want %v", err, c.want)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("Open: %v; the text lacks %q", err, w)
				}
			}
			for _, w := range []string{"sec", "ret@", "\n", "ValidateConnect", "failed to connect"} {
				if strings.Contains(err.Error(), w) {
					t.Errorf("Open: %v; the text has %q", err, w)
				}
			}
		})
	}
}

// A right that is missing is named with the statement that gives it, and that
// statement helps.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	dsn := s.Database(t)
	if err := sql(t.Context(), dsn, `REVOKE CREATE ON SCHEMA public FROM PUBLIC`, `CREATE ROLE "Le Guest" LOGIN PASSWORD 'secret'`, `CREATE SCHEMA "my app"`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Exec("postgres", `DROP ROLE "Le Guest"`) })
	mend := func(as string) {
		t.Helper()
		_, err := postgres.Open(t.Context(), as, postgres.Options{}.Relaxed())
		if !errors.Is(err, postgres.ErrRights) {
			t.Fatalf("Open: %v, want ErrRights", err)
		}
		_, statement, _ := strings.Cut(err.Error(), ": GRANT ")
		statement, _, _ = strings.Cut("GRANT "+statement, " (")
		t.Log(statement)
		if err := sql(t.Context(), dsn, statement); err != nil {
			t.Fatal(err)
		}
	}
	guest := with(t, dsn, func(u *url.URL) { u.User = url.UserPassword("Le Guest", "secret") })
	mend(guest)
	shut(t, open(t, guest, postgres.Options{})) // makes the tables

	if _, _, err := postgres.Migrate(t.Context(), with(t, dsn, setting("search_path", `"my app"`))); err != nil {
		t.Fatal(err)
	}
	guest = with(t, guest, setting("search_path", `"my app"`))
	if err := sql(t.Context(), dsn, `GRANT USAGE ON SCHEMA "my app" TO "Le Guest"`); err != nil {
		t.Fatal(err)
	}
	mend(guest) // hf_meta, which tells what is there
	if err := sql(t.Context(), dsn, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "my app" TO "Le Guest"`,
		`REVOKE UPDATE, DELETE ON "my app".hf_queue FROM "Le Guest"`, `GRANT USAGE ON "my app".hf_seq TO "Le Guest"`); err != nil {
		t.Fatal(err)
	}
	mend(guest) // hf_owner
	mend(guest) // hf_queue
	work(t, open(t, guest, postgres.Options{}))
	if err := sql(t.Context(), dsn, `DROP OWNED BY "Le Guest"`); err != nil {
		t.Fatal(err)
	}
}

// work does with the store what a node does, and closes it.
func work(t testing.TB, db *postgres.DB) {
	t.Helper()
	ctx := t.Context()
	m := holdfast.Message{ID: "m", Source: "s", Destination: "a", Endpoint: "e", Kind: holdfast.Command, OrderingKey: "k"}
	if _, err := db.Enqueue(ctx, m); err != nil {
		t.Error(err)
	}
	b, err := db.Claim(ctx, map[string]int{"a": 1})
	if err != nil || len(b.Claims) != 1 {
		t.Fatalf("Claim = %+v, %v", b, err)
	}
	if _, err := db.Settle(ctx, holdfast.Settlement{Seq: b.Claims[0].Seq, Token: b.Claims[0].Token, State: holdfast.Delivered, Outcome: holdfast.Succeeded}); err != nil {
		t.Error(err)
	}
	if _, err := db.Process(ctx, m, time.Hour, func(context.Context, *postgres.Tx, holdfast.Message) ([]byte, error) { return nil, nil }); err != nil {
		t.Error(err)
	}
	if _, _, err := db.Expire(ctx); err != nil {
		t.Error(err)
	}
	if _, _, err := db.Purge(ctx, holdfast.Retention{Delivered: time.Nanosecond}); err != nil {
		t.Error(err)
	}
	if _, _, err := db.SweepInbox(ctx, time.Hour); err != nil {
		t.Error(err)
	}
	if _, err := db.Nodes(ctx); err != nil {
		t.Error(err)
	}
	if _, err := db.Server(ctx); err != nil {
		t.Error(err)
	}
	shut(t, db)
}

func TestServerThatDoesNotKeep(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t) // this server has fsync=off
	if _, err := postgres.Open(t.Context(), dsn, postgres.Options{}); !errors.Is(err, postgres.ErrNotDurable) || !strings.Contains(err.Error(), "fsync=off") {
		t.Errorf("Open with fsync=off: %v", err)
	}
	if have, _, err := postgres.SchemaStatus(t.Context(), dsn); have != 0 || err != nil {
		t.Errorf("SchemaStatus = %d, %v; a refused Open has changed something", have, err)
	}
	for what, c := range map[string]struct {
		server postgres.Facts
		want   error
	}{
		"old":              {postgres.Facts{Number: 130023, Version: "13.23", Encoding: "UTF8", Fsync: "on", FullPages: "on"}, postgres.ErrTooOld},
		"Latin":            {postgres.Facts{Number: 140000, Version: "14.0", Encoding: "LATIN1", Fsync: "on", FullPages: "on"}, postgres.ErrEncoding},
		"no sync":          {postgres.Facts{Number: 140000, Version: "14.0", Encoding: "UTF8", Fsync: "off", FullPages: "on"}, postgres.ErrNotDurable},
		"torn pages":       {postgres.Facts{Number: 140000, Version: "14.0", Encoding: "UTF8", Fsync: "on", FullPages: "off"}, postgres.ErrNotDurable},
		"all that matters": {postgres.Facts{Number: 140000, Version: "14.0", Encoding: "UTF8", Fsync: "on", FullPages: "on"}, nil},
	} {
		if err := c.server.Vet(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		} else if what == "old" && (!strings.Contains(err.Error(), "13.23") || !strings.Contains(err.Error(), "14 or newer")) {
			t.Errorf("%s: %v; it lacks what was found and what is needed", what, err)
		}
	}
}

func TestDatabaseInLatin(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	if err := s.Exec("postgres", `CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Exec("postgres", `DROP DATABASE latin WITH (FORCE)`) })
	refuse(t, s.DSN("latin"), postgres.ErrEncoding, "LATIN1")
}

func TestReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	name := nameOf(t, dsn)
	if err := sql(t.Context(), dsn, `ALTER DATABASE `+name+` SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	refuse(t, dsn, postgres.ErrReadOnly, "default_transaction_read_only")
	refuse(t, dsn, holdfast.ErrUnavailable)
}

// nameOf is the database of a DSN.
func nameOf(t testing.TB, dsn string) string {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return c.Database
}

// Whatever the role, the database or the address says, a session commits to
// the disk; one that cannot be brought to is refused.
func TestSynchronousCommit(t *testing.T) {
	t.Parallel()
	s := pgtest.Shared(t)
	dsn := s.Database(t)
	name := nameOf(t, dsn)
	if err := sql(t.Context(), dsn, `ALTER DATABASE `+name+` SET synchronous_commit = off`, `CREATE TABLE seen (value text)`); err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string]string{"off": "on", "local": "on", "remote_apply": "remote_apply"} {
		db := open(t, with(t, dsn, setting("synchronous_commit", asked)), postgres.Options{})
		if err := errors.Join(
			db.Own(t.Context(), `TRUNCATE seen`),
			db.Own(t.Context(), `INSERT INTO seen VALUES (current_setting('synchronous_commit'))`)); err != nil {
			t.Fatal(err)
		}
		if n := count(t, dsn, `SELECT count(*) FROM seen WHERE value = $1`, want); n != 1 {
			t.Errorf("asked for %s: the session does not have %s", asked, want)
		}
		shut(t, db)
	}
	p, through := newProxy(t, dsn)
	p.rewrite.Store(&[2]string{"'synchronous_commit', 'on'", "'synchronous_commit', 'off'"})
	refuse(t, through, postgres.ErrNotDurable, "synchronous_commit", "is off")
}

func TestTablesOfOthers(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		make string
		want error
		word string
	}{
		"a table of ours, without hf_meta": {`CREATE TABLE hf_queue (mine text)`, postgres.ErrForeign, "hf_queue"},
		"a sequence":                       {`CREATE SEQUENCE hf_seq`, postgres.ErrForeign, "hf_seq"},
		"another hf_meta":                  {`CREATE TABLE hf_meta (mine text)`, postgres.ErrForeign, "hf_meta"},
		"an empty hf_meta":                 {`CREATE TABLE hf_meta (key text, value text)`, postgres.ErrForeign, "hf_meta"},
		"nonsense in hf_meta":              {`CREATE TABLE hf_meta AS SELECT 'schema' AS key, 'x' AS value`, postgres.ErrForeign, `"x"`},
		"a newer release":                  {`CREATE TABLE hf_meta AS SELECT 'schema' AS key, '99' AS value`, postgres.ErrNewer, "99"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Shared(t).Database(t)
			if err := sql(t.Context(), dsn, c.make); err != nil {
				t.Fatal(err)
			}
			before := count(t, dsn, `SELECT count(*) FROM pg_class`)
			refuse(t, dsn, c.want, c.word)
			if _, _, err := postgres.Migrate(t.Context(), dsn); !errors.Is(err, c.want) {
				t.Errorf("Migrate: %v, want %v", err, c.want)
			}
			if n := count(t, dsn, `SELECT count(*) FROM pg_class`); n != before {
				t.Errorf("%d things in the database, %d before", n, before)
			}
		})
	}
}

// Case 10: to migrate to what is there already is a success that does nothing;
// what failed leaves nothing and goes on from there.
func TestMigrateAgain(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	if err := sql(t.Context(), dsn, `CREATE FUNCTION hf_now() RETURNS text LANGUAGE sql AS 'SELECT NULL::text'`); err != nil {
		t.Fatal(err)
	}
	if _, _, err := postgres.Migrate(t.Context(), dsn); err == nil || !strings.Contains(err.Error(), "0001_first.sql") {
		t.Errorf("Migrate into a function of another's: %v", err)
	}
	if n := count(t, dsn, `SELECT count(*) FROM pg_class WHERE relname LIKE 'hf\_%'`); n != 0 {
		t.Errorf("a migration that failed has left %d things", n)
	}
	if err := sql(t.Context(), dsn, `DROP FUNCTION hf_now()`); err != nil {
		t.Fatal(err)
	}
	type step struct{ From, To int }
	_, newest, err := postgres.SchemaStatus(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	var got []step
	for range 2 {
		from, to, err := postgres.Migrate(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, step{from, to})
	}
	if diff := cmp.Diff([]step{{0, newest}, {newest, newest}}, got); diff != "" {
		t.Error(diff)
	}
	if n := count(t, dsn, `SELECT count(*) FROM hf_meta WHERE key IN ('schema', 'incarnation', 'created') AND value <> ''`); n != 3 {
		t.Errorf("hf_meta has %d of its 3 rows", n)
	}
}

// The tables stay where they are when the search path has another schema before.
func TestSchemaOfTheTables(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	if err := sql(t.Context(), dsn, `CREATE SCHEMA "Ünder""way"`, `CREATE SCHEMA front`); err != nil {
		t.Fatal(err)
	}
	app := with(t, dsn, setting("search_path", `"Ünder""way"`))
	shut(t, open(t, app, postgres.Options{}))
	shut(t, open(t, with(t, dsn, setting("search_path", `front, "Ünder""way"`)), postgres.Options{}))
	if n := count(t, dsn, `SELECT count(DISTINCT relnamespace) FROM pg_class WHERE relname LIKE 'hf\_%'`); n != 1 {
		t.Errorf("tables in %d schemas", n)
	}
}
