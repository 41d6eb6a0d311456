package holdfast_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// scratch is a file for an example, and the end of it.
func scratch() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "holdfast")
	must(err)
	return filepath.Join(dir, "example.db"), func() { _ = os.RemoveAll(dir) }
}

// openExample opens a store with a file of its own.
func openExample(ctx context.Context) (db *sqlite.DB, end func()) {
	path, remove := scratch()
	db, err := sqlite.Open(ctx, path, sqlite.Options{Source: "shop"})
	must(err)
	return db, func() {
		must(db.Close())
		remove()
	}
}

// openShop opens a database of the program's own, with a table of orders.
func openShop(ctx context.Context) (handle *sql.DB, end func()) {
	path, remove := scratch()
	handle, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	must(err)
	_, err = handle.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
	must(err)
	return handle, func() {
		must(handle.Close())
		remove()
	}
}

// deliverer is a destination that answers as the function does.
func deliverer(f func(m holdfast.Message) error) holdfast.Deliverer {
	return holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		return holdfast.Receipt{ID: m.ID}, f(m)
	})
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
