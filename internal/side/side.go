// Package side is the seam between the two stores and the code that is written once for both: the
// tables of features that stand beside the messages, in package nodestore.
//
// Statements are written in PostgreSQL's dialect, restricted to what SQLite understands too.
// Parameters are $1, $2 and so on; hf_now() is the store's present instant; FOR UPDATE keeps other
// nodes from a row. Each statement is a constant, so that a store can keep it prepared. Parameters
// are string, int64, bool or []byte.
package side

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/rows"
)

// Base is a database with this seam: a sqlite.DB or a postgres.DB.
type Base interface{ Side() Store }

// Store is what side tables need from a store. Its methods may be called concurrently.
type Store interface {
	// Change runs f in a transaction, which other calls may share, and returns when the transaction
	// is on disk. If f returns an error, Change undoes what f did and returns an error that wraps
	// it. f may run more than once and must start from nothing each time. f must not call the store
	// or wait for anything else. Let f refuse before it writes: SQLite undoes the writes of the calls
	// that share the transaction, too, and runs them again one by one.
	Change(ctx context.Context, c Cost, f func(tx Tx) error) error
	Reader
	// Together runs f, which reads several things that belong together. It reports whether all that
	// f has read is of one moment; PostgreSQL does not promise it. f may not call the store.
	Together(ctx context.Context, f func(r Reader) error) (oneMoment bool, err error)
	// Clock reads the store's clock. Call it before access is ended because its time is over.
	Clock(ctx context.Context) (Clock, error)
	// Time converts an instant of a row for people. An absent instant gives the zero time.
	Time(at rows.Instant) time.Time
	// Full reports whether the disk is full. Then notes that can be left out are left out.
	Full() bool
	// Incarnation names the store's history; see sites.Store.
	Incarnation(ctx context.Context) (string, error)
}

// Reader reads a store. Its methods may be called concurrently, unless Together made it.
type Reader interface {
	// Read calls row for each row of a query. The query must not change anything.
	Read(ctx context.Context, sql string, args []any, row func(scan Scan) error) error
	// EachRow calls yield for the rows of a table of package rows.
	EachRow(ctx context.Context, w rows.Range, yield func(r rows.Row) error) error
}

// Cost is how much a change writes. The zero value is a few small rows, which a full disk refuses.
type Cost struct {
	Rows, Bytes int // about how much it writes beyond that
	// LastRoom lets the change use the reserve of a full disk. It is for changes that end a
	// person's right, and for small and rare ones.
	LastRoom bool
	// Complete refuses the change while rows of a damaged file are still salvaged: ErrUnavailable. It
	// is for changes that take the next free number, which a salvaged row may have.
	Complete bool
}

// Scan reads the columns of a row into pointers to string, int64, bool or []byte. Only a []byte can
// hold NULL.
type Scan func(dest ...any) error

// Tx is the transaction of a Change.
type Tx interface {
	// Put writes rows. Each replaces the row with the same key.
	Put(list ...rows.Row) error
	// Add writes the rows that are new, and returns how many were.
	Add(list ...rows.Row) (added int64, err error)
	// Exec runs a statement that changes rows, and returns how many it changed.
	Exec(sql string, args ...any) (changed int64, err error)
	// Read is Store.Read inside the transaction.
	Read(sql string, args []any, row func(scan Scan) error) error
	// Note adds an entry to the journal, if anything follows the journal.
	Note(e *holdfast.Entry) error
}

// Clock is what a store knows about the time.
type Clock interface {
	// Judge decides whether access that ends at until, and was given for lasts, is over.
	Judge(until rows.Instant, lasts time.Duration) belief.Verdict
	// End returns when that access ends, for people.
	End(until rows.Instant, lasts time.Duration) time.Time
}
