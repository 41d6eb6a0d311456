// Package nodestore keeps what a node needs beside the outbox and the inbox: the tokens of its API,
// the sites of a central, the recipients of notifications, the activity log, audit logs, and what central keeps of its
// sites' calls.
//
// Each feature is written once for both stores, on the seam of package internal/side. Its contract
// is in the feature's package, its rows are in package rows, and its tables are in the schemas of
// both stores. Its statements are here, beside the methods that use them.
package nodestore

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/side"
)

// Store has the tables of all features in one database. Its methods may be called concurrently
// while the database is open.
type Store struct {
	Tokens     *Tokens
	People     *People
	Sites      *Sites
	Directory  *Directory
	Operations *Operations
	Activity   *Activity
	Audit      *Audit
	Telemetry  *Telemetry
	SiteCalls  *SiteCalls
	Fanout     *Fanout
	Bulks      *Bulks
	Minutes    *Minutes
}

// New returns the tables of an open store, a *sqlite.DB or a *postgres.DB. A nil log discards.
func New(db side.Base, log *slog.Logger) Store {
	s, log := db.Side(), cmp.Or(log, slog.New(slog.DiscardHandler))
	return Store{
		Tokens: &Tokens{s, log}, People: &People{s, log}, Sites: &Sites{s}, Directory: &Directory{s},
		Operations: &Operations{s}, Activity: &Activity{s}, Audit: &Audit{s}, Telemetry: &Telemetry{s}, SiteCalls: &SiteCalls{s}, Fanout: &Fanout{s}, Bulks: &Bulks{s}, Minutes: &Minutes{s},
	}
}

// named changes the row of the name that the entry is about, and adds the entry to the journal. If
// change changes no row, named returns the error unchanged.
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
