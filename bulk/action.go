package bulk

import (
	"context"
	"time"
)

// State is how an action stands.
type State string

// The states. Gathering leads to Running or Paused, and these to each other, to Cancelled and to Done.
const (
	Gathering State = "gathering" // its rows are being written; it never runs if that was cut off
	Running   State = "running"
	Paused    State = "paused"
	Cancelled State = "cancelled" // rows that were not done stay as they are
	Done      State = "done"
)

// Action is one thing to do to many rows.
type Action struct {
	ID      string // a UUIDv7
	List    string // of what: "messages" or another list that the node knows
	Verb    string // what to do
	Request string // what was asked, as JSON: the filter, and what the verb needs
	Actor   string // who asked
	Rate    int64  // rows a second; zero: as fast as it goes
	State   State
	Total   int64 // rows of the snapshot
	Next    int64 // number of the next row; the first one is 1
	Done    int64
	Refused int64     // rows whose state did not allow it
	Created time.Time // by the store's clock, as Ended
	Ended   time.Time // zero: it has not ended
}

// Row is one row of an action.
type Row struct {
	Seq     int64  // from 1
	Item    string // the id
	Outcome Outcome
	Detail  string // why it was refused
}

// Outcome is what became of a row.
type Outcome string

// The outcomes.
const (
	Open    Outcome = "open"
	DoneRow Outcome = "done"
	Refused Outcome = "refused"
)

// Store keeps actions. Its methods may be called concurrently. Unless it says otherwise, an error
// wraps ErrNotFound if there is no such action.
type Store interface {
	// AddBulk adds an action, which is Gathering, without rows.
	AddBulk(ctx context.Context, a *Action) error
	// GatherBulk adds rows behind the first so many. An action that is not Gathering is ErrState.
	GatherBulk(ctx context.Context, id string, after int64, items []string) error
	// MoveBulk changes the state, if it is one of from; else the error wraps ErrState.
	MoveBulk(ctx context.Context, id string, to State, from ...State) error
	Bulk(ctx context.Context, id string) (Action, error)
	// Bulks returns the actions before the one of an id, the newest first; before empty: all. limit
	// bounds them.
	Bulks(ctx context.Context, before string, limit int) ([]Action, error)
	// BulkRows returns the rows behind the first so many.
	BulkRows(ctx context.Context, id string, after int64, limit int) ([]Row, error)
	// ClaimBulk takes the oldest action behind that of an id which is Running and which nobody else holds,
	// for a time. It returns false if there is none. after empty: the oldest of all.
	ClaimBulk(ctx context.Context, holder string, lease time.Duration, after string) (Action, bool, error)
	// RecordBulk records what became of the next rows of an action that the holder has claimed, and
	// holds it on. After the last row a Running action is Done. If another holder has it, or has
	// recorded meanwhile, the error wraps ErrState.
	RecordBulk(ctx context.Context, a *Action, holder string, lease time.Duration, rows []Row) error
	// PurgeBulks removes actions that ended, or were added and never ran, so long ago.
	PurgeBulks(ctx context.Context, keep time.Duration) (purged int64, err error)
}
