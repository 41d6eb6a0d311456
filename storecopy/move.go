package storecopy

import (
	"context"
	"errors"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Errors of Copy, and of opening a store that a copy has touched.
var (
	// ErrMoved means that everything in the store was moved elsewhere.
	ErrMoved = errors.New("this store was moved")
	// ErrUnfinished means that a copy into the store has not ended.
	ErrUnfinished = errors.New("a copy into this store has not ended")
	// ErrNotEmpty means that the target already contains something.
	ErrNotEmpty = errors.New("the target is not empty")
	// ErrChanged means that the source was used since the copy began.
	ErrChanged = errors.New("the source was used since the copy began")
	// ErrUsed means that nodes have used the target since the copy ended.
	ErrUsed = errors.New("the target was used since the copy ended")
	// ErrElsewhere means that the source was not moved to this target.
	ErrElsewhere = errors.New("the source was not moved to this store")
	// ErrSame means that source and target are the same store.
	ErrSame = errors.New("source and target are the same store")
	// ErrInUse means that a node uses the store.
	ErrInUse = errors.New("a node uses this store")
	// ErrSchema means that a store has the tables of another release.
	ErrSchema = errors.New("tables of another release")
	// ErrDiffers means that the target differs from the source.
	ErrDiffers = errors.New("the copy differs from the source")
	// ErrContent means that a message cannot be copied without change.
	ErrContent = errors.New("a message cannot be copied")
)

// Exporter reads a store that no node uses.
type Exporter interface {
	// Origin identifies the store, and its last use.
	Origin(ctx context.Context) (Origin, error)
	// Now returns an instant of the store's clock.
	Now(ctx context.Context) (int64, error)
	Totals(ctx context.Context) (Totals, error)
	// Read returns a page of a table. A page without rows means that there are no more.
	Read(ctx context.Context, w rows.Range) ([]rows.Row, error)
}

// Source is a store that may be moved. Only its mark is changed.
type Source interface {
	Exporter
	// Mark records that everything was moved. From then on nodes refuse the store.
	Mark(ctx context.Context, m Moved) error
	// Unmark removes the mark.
	Unmark(ctx context.Context) error
}

// Importer fills a store that no node uses, and reads it back.
type Importer interface {
	Exporter
	// Begin records a copy. From then on new rows get numbers above those of the source.
	Begin(ctx context.Context, p Progress, t Totals) error
	// Write adds a page of one table and records the progress, atomically.
	Write(ctx context.Context, page []rows.Row, p Progress) error
	// Place makes the next message of each ordering key due if no other message of the key is under
	// way. It may be repeated.
	Place(ctx context.Context) error
	// Counts returns the counters that the store keeps.
	Counts(ctx context.Context) (holdfast.Counts, error)
	// End records that the copy has ended.
	End(ctx context.Context, p Progress) error
}

// Limits of a page. Its last row may exceed the bytes.
const (
	pageRows  = 1000
	pageBytes = 4 << 20
)

// Origin identifies a store.
type Origin struct {
	Store string    // random, set when the store is made
	Use   string    // changes whenever the store is used
	Moved *Moved    // nil: not moved
	Copy  *Progress // of the last copy into it; nil: none
}

// Moved is the mark of a store that was moved.
type Moved struct {
	To    string `json:"to"`    // for people
	Store string `json:"store"` // Origin.Store of the target
	At    string `json:"at"`
}

// Totals says how much a store contains.
type Totals struct {
	Messages int64 `json:"messages"`
	Events   int64 `json:"history"`
	Inbox    int64 `json:"inbox"`

	Notifications int64 `json:"notifications"`

	LastMessage, LastEvent, LastInbox int64 `json:"-"` // highest numbers; a notification has the number of its message
}

func (t *Totals) all() int64 { return t.Messages + t.Events + t.Inbox + t.Notifications }

// count adds n rows of a table.
func (t *Totals) count(of *rows.Table, n int64) {
	switch of.Name {
	case "hf_message":
		t.Messages += n
	case "hf_entry":
		t.Events += n
	case "hf_inbox":
		t.Inbox += n
	case "hf_notification":
		t.Notifications += n
	}
}

// Progress is the progress of a copy, kept in the target.
type Progress struct {
	From     string  `json:"from"`     // for people
	Store    string  `json:"store"`    // Origin of the source
	Use      string  `json:"use"`      //
	Base     int64   `json:"base"`     // an instant of the source
	HereNow  int64   `json:"here_now"` // the same moment in the target
	Table    string  `json:"table"`    // empty: from a release without tables, which no copy can continue
	After    string  `json:"behind"`   // rows.Table.Place of the last copied row; empty: none
	Copied   Totals  `json:"copied"`
	Compared *Report `json:"compared,omitempty"` // of a comparison that found both equal
	Done     bool    `json:"done"`
	Ended    string  `json:"ended,omitempty"` // Origin.Use of the target when the copy ended
}
