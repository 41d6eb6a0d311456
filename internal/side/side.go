// Package side is the seam between the two stores and what is written once for both: the
// tables of features that stand beside the messages, in package nodestore.
//
// A statement is PostgreSQL's, in the words that SQLite has as well: parameters are $1, $2
// and so on, hf_now() is the store's present instant, FOR UPDATE keeps other nodes from a
// row. It is a constant, so that a store keeps it prepared. Parameters are string, int64,
// bool or []byte.
package side

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/rows"
)

// Base is a database with such a seam: sqlite.DB and postgres.DB are.
type Base interface{ Side() Store }

// Store is what side tables need of a store. Its methods may be called concurrently.
type Store interface {
	// Change runs f in a transaction, which may be shared with other calls, and returns
	// when that is on disk. An error of f undoes what f did, and is returned so that
	// errors.Is finds it. f may run more than once, and starts from nothing each time. It
	// must not call the store, nor wait for anything else.
	Change(ctx context.Context, c Cost, f func(tx Tx) error) error
	// Read calls row for each row of a query that changes nothing.
	Read(ctx context.Context, sql string, args []any, row func(scan Scan) error) error
	// EachRow calls yield for rows of a table of package rows.
	EachRow(ctx context.Context, w rows.Range, yield func(r rows.Row) error) error
	// Clock looks at the store's clock, before access ends by it.
	Clock(ctx context.Context) (Clock, error)
	// Time is an instant of a row, for people. Zero: there is none.
	Time(at rows.Instant) time.Time
	// Full says that the disk is: what need not be noted is not.
	Full() bool
	// Incarnation names the store's history: sites.Store.
	Incarnation(ctx context.Context) (string, error)
}

// Cost is what a change takes. The zero value is a few small rows, which a full disk refuses.
type Cost struct {
	Rows, Bytes int // about how much more it writes
	// LastRoom lets it use what a full disk has set aside: it ends what somebody may do,
	// or is small and seldom.
	LastRoom bool
}

// Scan reads the columns of a row into pointers to string, int64, bool or []byte. NULL is
// for bytes only.
type Scan func(dest ...any) error

// Tx is a transaction of Change.
type Tx interface {
	// Put writes rows, each in the place of the one with its key.
	Put(list ...rows.Row) error
	// Add is Put for rows that are new, and tells how many were.
	Add(list ...rows.Row) (added int64, err error)
	// Exec runs a statement that changes rows and returns none, and tells how many it has changed.
	Exec(sql string, args ...any) (changed int64, err error)
	// Read is that of Store, as the transaction sees it.
	Read(sql string, args []any, row func(scan Scan) error) error
	// Note tells the journal, if anything follows it.
	Note(e *holdfast.Entry) error
}

// Clock is what a store knows of the time.
type Clock interface {
	// Judge says whether access for so long, which ends at an instant, is over.
	Judge(until rows.Instant, lasts time.Duration) belief.Verdict
	// End is when it ends, for people.
	End(until rows.Instant, lasts time.Duration) time.Time
}
