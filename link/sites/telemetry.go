package sites

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
)

// Limits of a batch of telemetry.
const (
	BatchRecords = 500
	BatchBytes   = 1 << 20 // of leaves and values; the last record may exceed it
)

// Limits of what central keeps of one site's logs.
const (
	MaxGaps = 64   // in one log
	MaxLogs = 1000 // of one site
)

// Log is an audit log of a site, as the site has it.
type Log struct {
	Origin string `json:"log"`
	Number int64  `json:"number"` // of the log in the site's store: a later history has a higher one
	Size   int64  `json:"size"`   // number of its last record
	Cut    int64  `json:"cut"`    // records up to here were purged
}

// Range is a range of records. Both ends are in it.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Record is one record of a Batch.
type Record struct {
	Leaf   []byte        `json:"leaf"`
	Values []audit.Value `json:"values,omitempty"` // those that were not erased
}

// Batch is consecutive records of a log. Central computes their chain hashes from Before and the
// leaves, and compares the result with End.
type Batch struct {
	Log     Log      `json:"log"`
	First   int64    `json:"first"`  // number of the first record
	Before  []byte   `json:"before"` // chain hash of the record before it; of the first record of a log: zeros
	End     []byte   `json:"end"`    // chain hash of the last record
	Records []Record `json:"records"`
	Calls   []Call   `json:"calls,omitempty"` // operations that the records are about
}

// Last returns the number of the last record.
func (b *Batch) Last() int64 { return b.First + int64(len(b.Records)) - 1 }

// Copy is what central has of a log.
type Copy struct {
	Origin string  `json:"log"`
	Size   int64   `json:"size"`           // number of the last record that it has
	Gaps   []Range `json:"gaps,omitempty"` // that it lacks below Size, from the oldest
}

// Refusals of a batch. None of them changes anything at central.
var (
	// ErrForeign means that a log, or a record in it, is not the site's own.
	ErrForeign = errors.New("not of this site")
	// ErrBroken means that a batch contradicts itself, or what central has of the log.
	ErrBroken = errors.New("the chain does not match")
	// ErrUnreadable means that a record is none that this central can read. A later version may.
	ErrUnreadable = errors.New("record not readable")
	// ErrGaps means that the log would have more than MaxGaps gaps: the oldest must be filled first.
	ErrGaps = errors.New("too many gaps")
)

// Copies is central's end of telemetry. A store implements it. Its methods are atomic and may be
// called concurrently.
type Copies interface {
	// Copy writes the records of a batch that are new, and the calls that are newer, in one
	// transaction, and returns what central has of the log then. A record is never overwritten.
	// A refusal wraps ErrForeign, ErrBroken, ErrUnreadable, ErrGaps or holdfast.ErrInvalid.
	Copy(ctx context.Context, site string, b *Batch) (Copy, error)
	// Copied returns what central has of these logs. A log that is not the site's, or of which
	// central has nothing, is empty.
	Copied(ctx context.Context, site string, origins []string) ([]Copy, error)
}

// Logs is a site's end of telemetry. A store implements it. Its methods may be called concurrently.
type Logs interface {
	// Logs lists the logs of the store's own histories, the newest first.
	Logs(ctx context.Context) ([]Log, error)
	// Batch reads records of a log from first to at most last, within the limits of a batch and
	// at most bytes. It returns an empty batch if the first record is not there.
	Batch(ctx context.Context, l Log, first, last, bytes int64) (Batch, error)
	// Written returns when a record was written. Zero: it is not there.
	Written(ctx context.Context, l Log, seq int64) (time.Time, error)
}

// Call is what a site says of one of its operations (SF-21). Times are microseconds since 1970, by
// the site's clock; zero: never.
type Call struct {
	ID          holdfast.ID       `json:"id"`
	Revision    int64             `json:"revision"` // see RevisionOf
	Node        string            `json:"node,omitempty"`
	Category    holdfast.Category `json:"category"`
	Destination string            `json:"destination"`
	Endpoint    string            `json:"endpoint"`
	Status      string            `json:"status"` // as its site names it
	Retries     int64             `json:"retries,omitempty"`
	LastError   string            `json:"lastError,omitempty"`
	HTTP        int64             `json:"http,omitempty"` // status of the last attempt that failed
	Instance    string            `json:"instance,omitempty"`
	Script      string            `json:"script,omitempty"`
	Execution   string            `json:"execution,omitempty"`
	Created     int64             `json:"created"`
	Attempted   int64             `json:"attempted,omitempty"`
	Ended       int64             `json:"ended,omitempty"`
}

// RevisionOf numbers the states of a message in the order in which one store can see them: by cycle,
// by tries, and then by how final the state is.
func RevisionOf(r *holdfast.Record) int64 {
	var ended int64
	switch r.State {
	case holdfast.Pending, holdfast.Claimed:
	case holdfast.Parked:
		ended = 1
	case holdfast.Delivered, holdfast.Expired:
		ended = 2
	case holdfast.Discarded: // also after it has expired
		ended = 3
	}
	return int64(r.Cycle)<<32 | int64(r.Tries)<<2 | ended
}
