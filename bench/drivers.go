package main

import (
	"database/sql"
	"fmt"

	_ "github.com/mattn/go-sqlite3" // registers the driver in C
)

// sqlDriver is a driver, with the common pragmas in its own form.
type sqlDriver struct{ name, title, options string }

func modernc() sqlDriver { return sqlDriver{name: "sqlite", options: pragmas} }

// mattn has no option for the checkpoint's size; its default is a quarter of it.
func mattn() sqlDriver {
	return sqlDriver{
		name: "sqlite3", title: ", mattn",
		options: "?_busy_timeout=5000&_journal_mode=WAL&_synchronous=FULL&_cache_size=-8000",
	}
}

// open opens the caller's database with a pool of the given size.
func (d sqlDriver) open(path string, connections int) (*sql.DB, error) {
	db, err := sql.Open(d.name, "file:"+path+d.options)
	if err != nil {
		return nil, fmt.Errorf("open the caller's file: %w", err)
	}
	db.SetMaxOpenConns(connections)
	return db, nil
}
