// Package activity keeps what happened to a node's messages, for the people of its site: queued,
// delivered, retried, parked, and what people did about them.
//
// The log follows the journal, so it changes no delivery and no reply. Each act stands in it
// exactly once: after a crash, after a restore of a backup, and where several nodes share a store.
// Acts are numbered without gaps in the order in which the log has read them, so that a reader
// knows where it is and what it has missed.
package activity

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Kind is what happened. The numbers are stored and never change.
type Kind int64

// The kinds (SF-27). Retried is a failed attempt that another will follow. Retry and Discard are
// what a person did. A message that was refused at its first try, as its caller was told, is a
// Discard without an actor. Disabled is a subscription that a node has disabled, and no message: its error says why.
const (
	Queued    Kind = 1
	Delivered Kind = 2
	Retried   Kind = 3
	Parked    Kind = 4
	Retry     Kind = 5
	Discard   Kind = 6
	Disabled  Kind = 7
)

// Kinds lists the names of all kinds, by number; the first one has no name.
func Kinds() []string {
	return []string{"", "queued", "delivered", "retried", "parked", "retry", "discard", "disabled"}
}

func (k Kind) String() string {
	if names := Kinds(); k > 0 && int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Act is one activity.
type Act struct {
	Seq         int64 // grows by one from act to act
	At          time.Time
	Kind        Kind
	Message     holdfast.ID
	Destination string
	Cycle       int
	Attempt     int    // in its cycle; of Delivered, Retried and Parked
	Actor       string // who did it; empty: nobody
	Reason      holdfast.Reason
	Code, Error string // of a failed attempt
}

// Query narrows a list. Zero fields do not narrow.
type Query struct {
	Kind         Kind
	Destination  string
	Among        []string // only these destinations; empty: all
	Actor        string
	Message      holdfast.ID
	Since, Until time.Time
}

// Range is a part of the log: the acts between two numbers, without either.
type Range struct {
	After, Before int64
	Newest        bool // the newest come first
	Limit         int  // the most acts
}

// Store keeps acts. Its methods may be called concurrently. Its rows are those of rows.Activity,
// which a follower of the journal returns.
type Store interface {
	// Ends returns the numbers of the oldest and the newest act; zero: there is none.
	Ends(ctx context.Context) (oldest, newest int64, err error)
	// Around returns the range with all acts from since until until; a zero time does not narrow.
	// It may have a few more.
	Around(ctx context.Context, since, until time.Time) (Range, error)
	// Acts returns the acts of a range that the query finds. It looks at each act of the range,
	// unless the query has a message.
	Acts(ctx context.Context, q Query, r Range) ([]Act, error)
	// Purge deletes the oldest acts, as far as they are older than keep, and leaves the newest one.
	// One call deletes at most 1000; more reports that there may be others. What is only old by a
	// clock that is doubted stays.
	Purge(ctx context.Context, keep time.Duration) (more bool, err error)
}

// Page is one page of a list.
type Page struct {
	Acts []Act
	Next int64 // Before of the next page; zero: there is none. A page may have no acts and a Next.
}

// lookAt is how many acts a page looks at, however few of them it finds. It bounds the time of a
// page; the next one goes on from there.
const lookAt = 20_000

// List returns the acts before a number, newest first. Zero: the newest ones.
func List(ctx context.Context, s Store, q Query, before int64, limit int) (p Page, err error) {
	oldest, newest, err := s.Ends(ctx)
	if err != nil || newest == 0 {
		return p, err
	}
	r := Range{After: oldest - 1, Before: newest + 1}
	if !q.Since.IsZero() || !q.Until.IsZero() {
		around, err := s.Around(ctx, q.Since, q.Until)
		if err != nil {
			return p, err
		}
		r.After, r.Before = max(r.After, around.After), min(r.Before, around.Before)
	}
	if before > 0 {
		r.Before = min(r.Before, before)
	}
	least := r.After
	if q.Message == "" {
		r.After = max(r.After, r.Before-1-lookAt)
	}
	r.Newest, r.Limit = true, limit
	if p.Acts, err = s.Acts(ctx, q, r); err != nil {
		return Page{}, err
	}
	switch {
	case len(p.Acts) == limit:
		p.Next = p.Acts[limit-1].Seq
	case r.After > least:
		p.Next = r.After + 1
	}
	if p.Next <= least+1 {
		p.Next = 0
	}
	return p, nil
}
