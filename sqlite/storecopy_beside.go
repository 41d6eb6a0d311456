package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
)

// Reader reads the tables of a file, beside the node that may own it. What it reads may change between two
// calls of Read. It changes nothing.
type Reader struct{ contents }

// OpenReader opens the file at path to read it. It waits for nobody, and keeps nobody out.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	r := &Reader{}
	err := r.open(ctx, path)
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("open %s to read: %w", path, translate(err))
	}
	return r, nil
}

func (r *Reader) open(ctx context.Context, path string) error {
	path, err := realPath(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil { // else SQLite would make one
		return err
	}
	o := Options{}.withDefaults()
	r.handle = sql.OpenDB(connector{o.connect, dsn(path, "query_only(1)")})
	r.handle.SetMaxOpenConns(1)
	return r.vet(ctx)
}

// Close releases the file.
func (r *Reader) Close() error {
	if r.handle == nil {
		return nil
	}
	return r.handle.Close()
}
