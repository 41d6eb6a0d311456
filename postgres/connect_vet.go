package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// minServer is the oldest supported release. Older ones get no fixes any more, and 12 lacks
// transaction numbers that last.
const minServer = 140000

// vet refuses a server that would break a promise later. It runs before anything is changed.
func (db *DB) vet(ctx context.Context) error {
	conn, err := db.pools.own.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := db.vetPooler(ctx, conn.Conn()); err != nil {
		return err
	}
	return vetServer(ctx, conn.Conn(), db.opts.relaxed)
}

const readServer = `SELECT current_setting('server_version_num')::integer, current_setting('server_version'), current_setting('server_encoding'),
	current_setting('fsync'), current_setting('full_page_writes')`

// facts are what a server reports about itself.
type facts struct {
	number                              int
	version, encoding, fsync, fullPages string
}

// vetServer checks the server, and the rights on existing tables.
func vetServer(ctx context.Context, conn *pgx.Conn, relaxed bool) error {
	var f facts
	if err := conn.QueryRow(ctx, readServer).Scan(&f.number, &f.version, &f.encoding, &f.fsync, &f.fullPages); err != nil {
		return fmt.Errorf("read the server's settings: %w", err)
	}
	if err := f.vet(relaxed); err != nil {
		return err
	}
	t, err := findTables(ctx, conn)
	if err != nil {
		return err
	}
	return vetRights(ctx, conn, t)
}

func (f *facts) vet(relaxed bool) error {
	switch {
	case f.number < minServer:
		return fmt.Errorf("%w: the server is %s; %d or newer is needed", ErrTooOld, f.version, minServer/10000)
	case f.encoding != "UTF8":
		return fmt.Errorf("%w: the database's encoding is %s; create one with ENCODING 'UTF8' TEMPLATE template0", ErrEncoding, f.encoding)
	case f.fsync != "on" && !relaxed:
		return fmt.Errorf("%w: the server runs with fsync=%s, so that a crash may lose or damage what it has acknowledged; set fsync=on in postgresql.conf", ErrNotDurable, f.fsync)
	case f.fullPages != "on" && !relaxed:
		return fmt.Errorf("%w: the server runs with full_page_writes=%s, so that a crash may damage its pages; set full_page_writes=on in postgresql.conf", ErrNotDurable, f.fullPages)
	}
	return nil
}

const (
	mayCreate = `SELECT has_schema_privilege($1, 'USAGE'), has_schema_privilege($1, 'CREATE')`
	// missingRights lists tables and sequences with the rights that this role lacks.
	missingRights = `SELECT c.relname::text, c.relkind = 'S',
			CASE WHEN c.relkind = 'S' THEN ARRAY(SELECT p FROM unnest(ARRAY['USAGE']) AS p WHERE NOT has_sequence_privilege(c.oid, p))
				ELSE ARRAY(SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p WHERE NOT has_table_privilege(c.oid, p)) END
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = ANY ($2::text[]) ORDER BY 1`
	notOwner = `SELECT coalesce(min(c.relname::text), '') FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = ANY ($2::text[]) AND NOT pg_has_role(c.relowner, 'USAGE')`
)

// vetRights names the first missing right and the statement that grants it.
func vetRights(ctx context.Context, conn *pgx.Conn, t tables) error {
	var use, create bool
	if err := conn.QueryRow(ctx, mayCreate, t.schema).Scan(&use, &create); err != nil {
		return fmt.Errorf("look up rights: %w", err)
	}
	at := pgx.Identifier{t.schema}
	newest := len(migrations())
	switch {
	case !use:
		return fmt.Errorf("%w: %s", ErrRights, grant("USAGE", "SCHEMA", at, t.role))
	case t.version < newest && !create:
		return fmt.Errorf("%w: the tables must be created in schema %s: %s (since PostgreSQL 15 not every role may create tables in public)",
			ErrRights, t.schema, grant("CREATE", "SCHEMA", at, t.role))
	case t.version == 0:
		return nil
	}
	if t.version < newest {
		var table string
		if err := conn.QueryRow(ctx, notOwner, t.schema, tableNames()).Scan(&table); err != nil {
			return fmt.Errorf("look up rights: %w", err)
		}
		if table != "" {
			return fmt.Errorf("%w: this release changes table %s, and only its owner may do that; migrate as its owner", ErrRights, table)
		}
	}
	rows, err := conn.Query(ctx, missingRights, t.schema, tableNames())
	if err != nil {
		return fmt.Errorf("look up rights: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var sequence bool
		var missing []string
		if err := rows.Scan(&name, &sequence, &missing); err != nil {
			return err
		}
		if len(missing) > 0 {
			kind := "TABLE"
			if sequence {
				kind = "SEQUENCE"
			}
			return fmt.Errorf("%w: %s", ErrRights, grant(strings.Join(missing, ", "), kind, pgx.Identifier{t.schema, name}, t.role))
		}
	}
	return rows.Err()
}

// grant returns the statement that grants the missing rights.
func grant(rights, kind string, on pgx.Identifier, role string) string {
	return fmt.Sprintf("GRANT %s ON %s %s TO %s", rights, kind, on.Sanitize(), pgx.Identifier{role}.Sanitize())
}

const (
	vetPoolerFor = 5 * time.Second
	// backend is asked of two connections in turn. If each has its own server process, the answers
	// are always the same two numbers.
	backend = `SELECT pg_backend_pid()`
)

// vetPooler checks that each connection keeps its process of the server. A pooler in transaction
// mode gives both connections the same process, or sooner or later gives one of them another
// process.
func (db *DB) vetPooler(ctx context.Context, a *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, vetPoolerFor)
	defer cancel()
	from := db.pools.own // the store's own pool, which vet uses too
	if from.Config().MaxConns < 2 {
		from = db.pools.lent
	}
	other, err := from.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect a second time: %w", err)
	}
	defer other.Release()
	return vetPooler(ctx, a, other.Conn())
}

// vetPooler asks two connections in turn.
func vetPooler(ctx context.Context, a, b *pgx.Conn) error {
	rounds := 2
	if serverOf(a).pooled {
		rounds = 25
	}
	first := uint32(0)
	for range rounds {
		one, err := askBackend(ctx, a)
		if err != nil {
			return err
		}
		two, err := askBackend(ctx, b)
		if err != nil {
			return err
		}
		if first == 0 {
			first = one
		}
		if one != first || one == two {
			return fmt.Errorf("%w: the address leads to a pooler (pgbouncer?) that runs each transaction on another connection, so that settings, prepared statements, locks and LISTEN are lost; use its session mode (pool_mode = session) or the server's own address", ErrPooler)
		}
	}
	return nil
}

// askBackend prepares no statement: behind a pooler, another client might meet it.
func askBackend(ctx context.Context, c *pgx.Conn) (pid uint32, err error) {
	if err := c.QueryRow(ctx, backend, pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return 0, fmt.Errorf("ask for the server's process: %w", err)
	}
	return pid, nil
}
