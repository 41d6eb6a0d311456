package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// attached is a store in the caller's own database.
type attached struct {
	handle *sql.DB
	db     *sqlite.DB
}

const attachedSettings = "attached to the caller's file, 1 connection"

func attach(ctx context.Context, d sqlDriver, dir string) (a attached, err error) {
	if a.handle, err = d.open(filepath.Join(dir, "shop.db"), 1); err != nil {
		return a, err
	}
	if _, err := a.handle.ExecContext(ctx, shopTable); err != nil {
		return a, errors.Join(fmt.Errorf("make orders: %w", err), a.handle.Close())
	}
	if a.db, err = sqlite.Attach(ctx, a.handle, sqlite.Options{Source: "bench"}); err != nil {
		return a, errors.Join(err, a.handle.Close())
	}
	return a, nil
}

func (a attached) Close() error { return errors.Join(a.db.Close(), a.handle.Close()) }

func benchMessage(n int) hf.Message {
	return hf.Message{Destination: destination(0), Endpoint: "Bench", Payload: payload(n)}
}

// ourIn joins the caller's transaction.
func ourIn(d sqlDriver) load {
	return load{
		name: "holdfast In" + d.title, role: roleOurs, settings: attachedSettings + "; In(tx).Enqueue in a transaction of database/sql",
		open: func(ctx context.Context, dir string) (loaded, error) {
			a, err := attach(ctx, d, dir)
			return loaded{close: a.Close, do: func(ctx context.Context, n int) error {
				return placeOrder(ctx, a.handle, n, func(tx *sql.Tx) error {
					_, err := a.db.In(tx).Enqueue(ctx, benchMessage(n))
					return err
				})
			}}, err
		},
	}
}

// ourDo gives the store's transaction to the caller.
func ourDo(d sqlDriver) load {
	return load{
		name: "holdfast Do" + d.title, role: roleOurs, settings: attachedSettings + "; Do with tx.Enqueue",
		open: func(ctx context.Context, dir string) (loaded, error) {
			a, err := attach(ctx, d, dir)
			return loaded{close: a.Close, do: func(ctx context.Context, n int) error { return doOrder(ctx, a.db, n) }}, err
		},
	}
}

// ourOwnDo keeps the caller's rows in the store's file.
func ourOwnDo() load {
	return load{
		name: "holdfast Do, own file", role: roleOurs, settings: "the orders are in the store's own file; Do with tx.Enqueue",
		open: func(ctx context.Context, dir string) (loaded, error) {
			db, err := openShop(ctx, dir)
			if err != nil {
				return loaded{}, err
			}
			return loaded{close: db.Close, do: func(ctx context.Context, n int) error { return doOrder(ctx, db, n) }}, nil
		},
	}
}

// ourPlain is for comparison: no row of the caller's, and callers share commits.
func ourPlain() load {
	return load{
		name: "holdfast, no order", role: roleOurs, settings: "the message alone, by Enqueue into a file of its own: no transaction of the caller's",
		open: func(ctx context.Context, dir string) (loaded, error) {
			db, err := openStore(ctx, dir)
			if err != nil {
				return loaded{}, err
			}
			return loaded{close: db.Close, do: func(ctx context.Context, n int) error {
				_, err := db.Enqueue(ctx, benchMessage(n))
				return err
			}}, nil
		},
	}
}

// openShop opens a store in a file of its own, with orders in it.
func openShop(ctx context.Context, dir string) (*sqlite.DB, error) {
	db, err := openStore(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, shopTable)
		return err
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("make orders: %w", err), db.Close())
	}
	return db, nil
}

func doOrder(ctx context.Context, db *sqlite.DB, n int) error {
	return db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
		if _, err := tx.ExecContext(ctx, shopOrder, customer(n), cents(n)); err != nil {
			return err
		}
		_, err := tx.Enqueue(ctx, benchMessage(n))
		return err
	})
}
