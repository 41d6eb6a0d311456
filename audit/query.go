package audit

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// MaxPage is the most records of a page.
const MaxPage = 1000

// Query selects records, the newest first.
type Query struct {
	Filter

	After string // Page.Next of the previous page; empty: the newest records
	Limit int    // records of the page; 1 to MaxPage
}

// Page is a part of what a query selects.
type Page struct {
	Records []Found
	// Next continues with the next page; empty: there is none. If no index leads to what the filter
	// selects, a page may have few records, or none, and others follow all the same.
	Next string
	// LookedUntil is the time of the oldest record that was looked at. What the filter selects from
	// there on is in this page and those before it. Zero: everything was looked at.
	LookedUntil time.Time
}

// Found is a stored record.
type Found struct {
	Record

	Origin string    // name of the log
	Seq    int64     // in the log
	Stored time.Time // here
	Hash   []byte    // chain hash
	Leaf   []byte    // the record as it is stored
	Values []Value   // of the personal fields that were not erased
}

// KPIs are numbers of the audit log (AU-07).
type KPIs struct {
	Records int64     // that occurred within the window; at most MaxCount
	Errors  int64     // of these, with a status that is an error; at most MaxCount
	Oldest  time.Time // of the records that are kept; zero: there are none
	Newest  time.Time
}

// SiteKPIs are numbers of the records of one site (AU-07).
type SiteKPIs struct {
	Site    string
	Records int64 // that occurred within the window; at most MaxCount
	Errors  int64 // of these, with a status that is an error; of all sites together at most MaxCount are counted
}

// MaxCount is the most records that are counted for KPIs.
const MaxCount = 100_000

// Records is what can be asked of the records of a store. Its methods may be called concurrently.
type Records interface {
	// Query returns a page. It takes about 50 ms at most, or the time to read one index entry more.
	// ErrInvalid: After is not of a page.
	Query(ctx context.Context, q Query) (Page, error)
	// Record returns a record by the id of its event, or ErrNotFound.
	Record(ctx context.Context, id holdfast.ID) (Found, error)
	// KPIs counts the records of the last window.
	KPIs(ctx context.Context, window time.Duration) (KPIs, error)
	// SiteKPIs counts the records of the last window for each of these sites, in their order.
	SiteKPIs(ctx context.Context, window time.Duration, sites []string) ([]SiteKPIs, error)
}
