package postgres

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed schema/*.sql
var schema embed.FS

// Keys of hf_meta.
const (
	metaSchema      = "schema"      // number of the last migration
	metaIncarnation = "incarnation" // random, made once
	metaCreated     = "created"     // instant
)

// SchemaStatus returns the number of the last migration that the database has (0 if it has none of
// our tables), and of the last one that this release has. It changes nothing.
func SchemaStatus(ctx context.Context, dsn string) (have, want int, err error) {
	err = alone(ctx, dsn, func(conn *pgx.Conn) error {
		t, err := findTables(ctx, conn)
		have = t.version
		return err
	})
	return have, len(migrations()), err
}

// Migrate brings the tables of a database up to this release, and returns their schema number
// before and after. It does nothing if they are up to date. A migration that fails changes nothing;
// the next call continues from there.
func Migrate(ctx context.Context, dsn string) (from, to int, err error) {
	err = alone(ctx, dsn, func(conn *pgx.Conn) error {
		if err := vetServer(ctx, conn, true); err != nil {
			return err
		}
		from, to, err = migrateOn(ctx, conn)
		return err
	})
	return from, to, err
}

// alone runs fn on a separate connection.
func alone(ctx context.Context, dsn string, fn func(conn *pgx.Conn) error) error {
	o, err := Options{Node: "migrate"}.withDefaults()
	if err != nil {
		return err
	}
	c, err := poolConfig(dsn, &o)
	if err != nil {
		return err
	}
	prepare(c, nil)
	conn, err := pgx.ConnectConfig(ctx, c.ConnConfig)
	if err != nil {
		return explain(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to lose
	return explain(fn(conn))
}

func (db *DB) migrate(ctx context.Context) error {
	conn, err := db.pools.own.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, _, err = migrateOn(ctx, conn.Conn())
	return err
}

func migrations() []string {
	entries, err := schema.ReadDir("schema")
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// tables describes our tables in a database.
type tables struct {
	schema  string // the schema that has them, or would have them
	role    string // role of the connection
	version int    // 0: there are no tables
}

const (
	// whereTables finds hf_meta along the search path, as any statement would.
	whereTables = `SELECT coalesce((SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('hf_meta')), ''),
		coalesce(current_schema(), ''), current_user::text,
		ARRAY(SELECT c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
			WHERE n.nspname = current_schema() AND c.relname = ANY ($1::text[]) ORDER BY 1)`
	readMeta = `SELECT value FROM hf_meta WHERE key = $1`
)

// findTables reads the state of the tables. It changes nothing.
func findTables(ctx context.Context, conn *pgx.Conn) (t tables, err error) {
	at, current, others, err := lookForTables(ctx, conn, &t.role)
	if err != nil {
		return t, fmt.Errorf("look for tables: %w", err)
	}
	if at == "" {
		switch {
		case len(others) > 0:
			return t, fmt.Errorf("%w: schema %s has %s but no hf_meta; give Holdfast a separate database or schema (search_path in the address)", ErrForeign, current, strings.Join(others, ", "))
		case current == "":
			return t, errNoSchema
		}
		t.schema = current
		return t, nil
	}
	t.schema = at
	var text string
	err = conn.QueryRow(ctx, readMeta, metaSchema).Scan(&text)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42501" {
		return t, fmt.Errorf("%w: %s", ErrRights, grant("SELECT, INSERT, UPDATE, DELETE", "TABLE", pgx.Identifier{at, "hf_meta"}, t.role))
	} else if ok && e.Code[:2] == "42" || errors.Is(err, pgx.ErrNoRows) {
		return t, fmt.Errorf("%w: table %s.hf_meta is not Holdfast's: it does not have the version of its schema", ErrForeign, at)
	} else if err != nil {
		return t, fmt.Errorf("read the version of the schema: %w", err)
	}
	if t.version, err = strconv.Atoi(text); err != nil || t.version < 1 {
		return t, fmt.Errorf("%w: table %s.hf_meta has the schema number %q", ErrForeign, at, text)
	}
	if newest := len(migrations()); t.version > newest {
		return t, fmt.Errorf("%w: its schema is number %d, this release knows %d; use the release that wrote it, or a newer one", ErrNewer, t.version, newest)
	}
	return t, nil
}

// The tables that another node creates appear in a session's snapshot a moment before they appear
// in its cache of names. Then lookForTables looks again: nameLooks times, nameDelay apart.
const (
	nameLooks = 500
	nameDelay = 10 * time.Millisecond
)

// lookForTables returns the schema where hf_meta is found by its name, the current schema, and the
// tables of the current schema that have names of ours.
func lookForTables(ctx context.Context, conn *pgx.Conn, role *string) (at, current string, others []string, err error) {
	for range nameLooks {
		err := conn.QueryRow(ctx, whereTables, tableNames()).Scan(&at, &current, role, &others)
		if err != nil || at != "" || !slices.Contains(others, "hf_meta") {
			return at, current, others, err
		}
		if err := pause(ctx, nameDelay); err != nil {
			return "", "", nil, err
		}
	}
	return "", "", nil, fmt.Errorf("schema %s has hf_meta, but the server does not find it by its name", current)
}

var errNoSchema = fmt.Errorf("%w: no schema of the search path exists, or this role may use none; CREATE SCHEMA, GRANT USAGE, CREATE, or name another in the address (search_path)", ErrRights)

// tableNames reads the names of tables and sequences from the texts of the migrations.
func tableNames() (list []string) {
	for _, name := range migrations() {
		text, err := schema.ReadFile(path.Join("schema", name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			for _, kind := range []string{"CREATE TABLE ", "CREATE SEQUENCE "} {
				if rest, ok := strings.CutPrefix(line, kind); ok {
					list = append(list, strings.Trim(strings.Fields(rest)[0], ";("))
				}
			}
		}
	}
	return list
}

func migrateOn(ctx context.Context, conn *pgx.Conn) (from, to int, err error) {
	t, err := findTables(ctx, conn)
	if err != nil {
		return 0, 0, err
	}
	from = t.version
	for i, name := range migrations() {
		if i < t.version {
			continue
		}
		text, err := schema.ReadFile(path.Join("schema", name))
		if err != nil {
			return from, t.version, err
		}
		if err := migrateStep(ctx, conn, t.schema, string(text), i+1); err != nil {
			return from, t.version, fmt.Errorf("migrate %s: %w", name, err)
		}
		t.version = i + 1
	}
	return from, t.version, nil
}

const (
	// lockMigration is waited for longer than other locks: if several nodes start together, one of
	// them migrates. It locks the schema, not the database.
	lockMigration = `SELECT pg_advisory_xact_lock(hashtextextended('holdfast migrate ' || $1, 0))`
	writeMeta     = `INSERT INTO hf_meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	writeMetaOnce = `INSERT INTO hf_meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING`
	writeCreated  = `INSERT INTO hf_meta (key, value) VALUES ($1, hf_now()::text) ON CONFLICT (key) DO NOTHING`
)

// migrateStep makes one migration and records its number in one transaction, so that an interrupted
// step leaves no trace.
func migrateStep(ctx context.Context, conn *pgx.Conn, at, text string, number int) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', '60s', true), set_config('statement_timeout', '0', true), set_config('search_path', quote_ident($1), true)`, at); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, lockMigration, at); err != nil {
			return fmt.Errorf("wait for another node that migrates: %w", err)
		}
		switch t, err := findTables(ctx, conn); { // again: another node may have been faster
		case err != nil:
			return err
		case t.version >= number:
			return nil
		}
		if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', '3s', true)`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		for _, meta := range []struct {
			sql  string
			args []any
		}{
			{writeMeta, []any{metaSchema, strconv.Itoa(number)}},
			{writeMetaOnce, []any{metaIncarnation, rand.Text()}},
			{writeCreated, []any{metaCreated}},
		} {
			if _, err := tx.Exec(ctx, meta.sql, meta.args...); err != nil {
				return err
			}
		}
		return nil
	})
}
