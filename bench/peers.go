package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver of every contender
)

// pragmas are the same for every contender.
const (
	pragmas    = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=cache_size(-8000)&_pragma=wal_autocheckpoint(4000)"
	pragmaText = "modernc.org/sqlite with journal_mode=WAL, synchronous=FULL, cache_size=-8000, busy_timeout=5000, wal_autocheckpoint=4000"
)

func dsn(path string) string { return "file:" + path + pragmas }

// openPeer opens a peer's file. connections limits the pool; 0 sets no limit.
func openPeer(dir string, connections int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(filepath.Join(dir, "peer.db")))
	if err != nil {
		return nil, fmt.Errorf("open peer's file: %w", err)
	}
	db.SetMaxOpenConns(connections)
	return db, nil
}

// inChunks calls do for consecutive ranges of [0, count).
func inChunks(count int, do func(from, to int) error) error {
	const chunk = 1000
	for from := 0; from < count; from += chunk {
		if err := do(from, min(from+chunk, count)); err != nil {
			return err
		}
	}
	return nil
}

// inTx runs do in one transaction.
func inTx(ctx context.Context, db *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// has reports whether the file has the table.
func has(ctx context.Context, db *sql.DB, table string) (bool, error) {
	n := 0
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", table).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look for table %s: %w", table, err)
	}
	return n > 0, nil
}
