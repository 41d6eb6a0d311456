package move

import (
	"context"
	"errors"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Errors of Copy, and of opening a store that a copy has touched.
var (
	// ErrMoved says that everything in the store was moved elsewhere.
	ErrMoved = errors.New("this store was moved")
	// ErrUnfinished says that a copy into the store has not ended.
	ErrUnfinished = errors.New("a copy into this store has not ended")
	// ErrNotEmpty says that the target holds something already.
	ErrNotEmpty = errors.New("the target is not empty")
	// ErrChanged says that the source was used since the copy began.
	ErrChanged = errors.New("the source was used since the copy began")
	// ErrUsed says that nodes have used the target since the copy ended.
	ErrUsed = errors.New("the target was used since the copy ended")
	// ErrElsewhere says that the source was not moved to this target.
	ErrElsewhere = errors.New("the source was not moved to this store")
	// ErrSame says that source and target are one store.
	ErrSame = errors.New("source and target are the same store")
	// ErrInUse says that a node uses the store.
	ErrInUse = errors.New("a node uses this store")
	// ErrSchema says that a store has the tables of another release.
	ErrSchema = errors.New("tables of another release")
	// ErrDiffers says that the target is not what the source is.
	ErrDiffers = errors.New("the copy is not what the source is")
	// ErrContent says that a message cannot be copied as it is.
	ErrContent = errors.New("a message cannot be copied")
)

// Exporter reads a store that nobody uses.
type Exporter interface {
	// Origin tells one store, and one time of its use, from another.
	Origin(ctx context.Context) (Origin, error)
	// Now is an instant of the store's clock.
	Now(ctx context.Context) (int64, error)
	Totals(ctx context.Context) (Totals, error)
	// Read returns a page of a table. One without rows is behind the last.
	Read(ctx context.Context, w rows.Range) ([]rows.Row, error)
}

// Source is a store that may be moved. Nothing but its mark is changed.
type Source interface {
	Exporter
	// Mark says that everything was moved; nodes refuse the store from then on.
	Mark(ctx context.Context, m Moved) error
	// Unmark takes the mark away.
	Unmark(ctx context.Context) error
}

// Importer fills a store that nobody uses, and reads it back.
type Importer interface {
	Exporter
	// Begin notes a copy, and that new rows get numbers above those of the source.
	Begin(ctx context.Context, p Progress, t Totals) error
	// Write adds a page of one table and notes the progress, both or neither.
	Write(ctx context.Context, page []rows.Row, p Progress) error
	// Place lets the next message of each ordering key go that has nobody on
	// the way. It may be done again.
	Place(ctx context.Context) error
	// Counts are the counters that the store keeps.
	Counts(ctx context.Context) (holdfast.Counts, error)
	// End notes that the copy has ended.
	End(ctx context.Context, p Progress) error
}

// Limits of a page. The last row may go over the bytes.
const (
	pageRows  = 1000
	pageBytes = 4 << 20
)

// Origin is which store it is.
type Origin struct {
	Store string    // made once, by chance
	Use   string    // another one whenever it was used meanwhile
	Moved *Moved    // nil: it was not
	Copy  *Progress // of the last copy into it; nil: there was none
}

// Moved is the mark of a store from which everything was moved.
type Moved struct {
	To    string `json:"to"`    // for people
	Store string `json:"store"` // Origin.Store of the target
	At    string `json:"at"`
}

// Totals is how much there is.
type Totals struct {
	Messages int64 `json:"messages"`
	Events   int64 `json:"history"`
	Inbox    int64 `json:"inbox"`

	Notifications int64 `json:"notifications"`

	LastMessage, LastEvent, LastInbox int64 `json:"-"` // the highest numbers; a notification's is a message's
}

func (t *Totals) all() int64 { return t.Messages + t.Events + t.Inbox + t.Notifications }

// count adds rows of a table.
func (t *Totals) count(of *rows.Table, n int64) {
	switch of.Name {
	case "hf_message":
		t.Messages += n
	case "hf_event":
		t.Events += n
	case "hf_inbox":
		t.Inbox += n
	case "hf_notification":
		t.Notifications += n
	}
}

// Progress is how far a copy is, kept in the target.
type Progress struct {
	From     string  `json:"from"`     // for people
	Store    string  `json:"store"`    // Origin of the source
	Use      string  `json:"use"`      //
	Base     int64   `json:"base"`     // an instant of the source,
	HereNow  int64   `json:"here_now"` // and the same moment here
	Table    string  `json:"table"`    // empty: of before there were tables, which no copy goes on with
	After    string  `json:"behind"`   // rows.Table.Place of the last row that was copied; empty: none was
	Copied   Totals  `json:"copied"`
	Compared *Report `json:"compared,omitempty"` // and found alike
	Done     bool    `json:"done"`
	Ended    string  `json:"ended,omitempty"` // Origin.Use of the target, when it was done
}
