package sqlite

import (
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

//go:embed schema/*.sql
var schema embed.FS

// Keys of hf_meta.
const (
	metaSchema = "schema" // number of the last migration
	// The same number again: otherwise damage to the one would look like a newer release, and lock
	// people out of their file for ever.
	metaSchemaAgain = "schema_again"
	metaSchemaHash  = "schema_hash" // of the definitions of tables and indexes
	// SQLite's own count of schema changes when the store was last opened. An ALTER changes the
	// count, damage to a definition does not.
	metaSchemaCount = "schema_count"
	metaEpoch       = "epoch"       // grows with each owner
	metaClean       = "clean"       // how the last owner has left: see file_owner.go
	metaClock       = "clock"       // an instant that the store's clock has reached
	metaWall        = "wall"        // what the wall clock showed at that instant
	metaWallHigh    = "wall_high"   // the latest time that the wall clock has shown
	metaLeaps       = "leaps"       // time that the store's clock has counted but nobody has seen pass
	metaIncarnation = "incarnation" // changes when the file is restored
	metaNotify      = "notify"      // callbacks are told of: 1: parked messages, 2: expired ones, 3: both
	metaBook        = "book"        // version of the channels and lists
	metaExclusive   = "exclusive"   // 1: the owner assumes that nobody else writes messages
)

// minSQLite is the first release without the WAL-reset fault (3.7.0 to 3.51.2), which could lose a
// commit with more than one connection.
const minSQLite = "3.51.3"

// checkVersions refuses an old SQLite and a file of a newer release, before anything is written.
func checkVersions(c *conn) error {
	v, err := c.pragma("SELECT sqlite_version()")
	if err != nil {
		return err
	}
	if olderVersion(v, minSQLite) {
		return fmt.Errorf("%w: SQLite %s is older than %s", ErrNotDurable, v, minSQLite)
	}
	have, err := schemaVersion(c)
	if err != nil {
		return err
	}
	if newest := len(migrations()); have > newest {
		return fmt.Errorf("%w: its schema is number %d, this release knows %d; use the release that wrote it, or a newer one", ErrNewer, have, newest)
	}
	return nil
}

func olderVersion(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, _ := strconv.Atoi(as[i])
		y, _ := strconv.Atoi(bs[i])
		if x != y {
			return x < y
		}
	}
	return len(as) < len(bs)
}

// schemaVersion returns 0 for a file without tables of this package.
func schemaVersion(c *conn) (int, error) {
	has, err := c.pragma("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'hf_meta'")
	if err != nil || has == "0" {
		return 0, err
	}
	v, err := c.pragma("SELECT value FROM hf_meta WHERE key = 'schema'")
	if err != nil {
		return 0, err
	}
	again, err := c.pragma("SELECT value FROM hf_meta WHERE key = 'schema_again'")
	if err != nil {
		return 0, err
	}
	number, err := strconv.Atoi(v)
	if err != nil || again != "" && again != v {
		return 0, fmt.Errorf("%w: its schema has the number %q, and again %q", ErrDamaged, v, again)
	}
	return number, nil
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

// migrate brings the schema up to date. Each step has its own transaction, which also notes the
// step's number: a step that was interrupted has not happened.
func migrate(c *conn) error {
	have, err := schemaVersion(c)
	if err != nil {
		return err
	}
	for i, name := range migrations() {
		if i < have {
			continue
		}
		text, err := schema.ReadFile(path.Join("schema", name))
		if err != nil {
			return err
		}
		if err := migrateStep(c, string(text), i+1); err != nil {
			return fmt.Errorf("migrate %s: %w", name, err)
		}
	}
	return nil
}

func migrateStep(c *conn, text string, number int) (err error) {
	begin := func() error { return c.text(statements[beginImmediate]) }
	if s, ok := c.runner.(*shared); ok {
		err = s.patiently(begin, nil)
	} else {
		err = begin()
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = c.text("ROLLBACK")
		}
	}()
	// Several processes can attach to one file: another one may have been faster.
	if have, err := schemaVersion(c); err != nil || have >= number {
		return errors.Join(err, c.text("ROLLBACK"))
	}
	if err := c.text(text); err != nil {
		return err
	}
	if _, err := c.exec(setMeta, metaSchema, int64(number)); err != nil {
		return err
	}
	if _, err := c.exec(setMeta, metaSchemaAgain, int64(number)); err != nil {
		return err
	}
	hash, err := c.schemaHash()
	if err != nil {
		return err
	}
	if _, err := c.exec(setMeta, metaSchemaHash, hash); err != nil {
		return err
	}
	return c.text("COMMIT")
}

func (c *conn) meta(key string) (int64, error) {
	var n int64
	_, err := c.one(getMeta, func(v []driver.Value) error {
		n = asInt(v[0])
		return nil
	}, key)
	return n, err
}

func (c *conn) metaText(key string) (text string, err error) {
	_, err = c.one(getMeta, func(v []driver.Value) error {
		text = asText(v[0])
		return nil
	}, key)
	return text, err
}
