// Package nodestore keeps what a node needs beside the outbox and the inbox: who may use
// its API, the sites of a central, and whom notifications go to.
//
// Each feature is written once, for both stores, on the seam of package internal/side: its
// contract stands with its package, its rows in package rows, its tables in the schema of
// both stores, and its statements here, beside the methods that use them.
package nodestore

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/side"
)

// Store is the tables of all features in one database. They are used as long as that is
// open, concurrently.
type Store struct {
	Tokens *Tokens
	Sites  *Sites
	Book   *Book
}

// New returns those of an open store: a *sqlite.DB or a *postgres.DB. No log: none.
func New(db side.Base, log *slog.Logger) Store {
	s := db.Side()
	return Store{&Tokens{s, cmp.Or(log, slog.New(slog.DiscardHandler))}, &Sites{s}, &Book{s}}
}

// named changes the row of the name that the entry is about, and tells the journal; if
// there was none to change, the error is unchanged.
func named(ctx context.Context, db side.Store, c side.Cost, e *holdfast.Entry, unchanged error, change func(tx side.Tx) (int64, error)) error {
	return db.Change(ctx, c, func(tx side.Tx) error {
		changed, err := change(tx)
		if err == nil && changed == 0 {
			err = unchanged
		}
		if err != nil {
			return err
		}
		return tx.Note(e)
	})
}
