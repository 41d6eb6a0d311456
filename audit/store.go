package audit

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast/rows"
)

// Store keeps logs. Package nodestore implements it. Its methods may be called concurrently.
type Store interface {
	// Incarnation names the store's history. A store that was restored has another one.
	Incarnation(ctx context.Context) (string, error)
	// OpenLog returns the log with this name. It makes an empty one if there is none. own says that
	// this store appends to it; otherwise it is a copy of another node's log.
	OpenLog(ctx context.Context, origin string, own bool) (*rows.AuditLog, error)
	// Lease gives the right to append to the caller for the next while, if nobody else has it. mine
	// is what the caller's last call returned, or zero. The answer zero means that another has it.
	Lease(ctx context.Context, mine int64) (int64, error)
	// Sign keeps a checkpoint of an own log that a key has just signed, unless there is one of the same size. One that
	// hands over to another key takes the place of that one. ErrOutdated: nothing was kept.
	Sign(ctx context.Context, c *rows.AuditCheckpoint, by Public) error
	// Old returns the records of a log after one number and up to another, limit of them at most, that are
	// older than keep. It ends before the first that is not, and believes no clock that may be wrong.
	Old(ctx context.Context, log, after, last int64, keep time.Duration, limit int) (Prefix, error)
	// Cut marks the records of a log up to last as purged, and forgets the gaps and checkpoints among them, but no
	// checkpoint that hands over to another key. It changes nothing if the mark is there already, or if a
	// hold was made after newest.
	Cut(ctx context.Context, log, last int64, hash Hash, newest rows.Instant) (done bool, err error)
	// Sweep deletes a page of the records up to a cut, with their values. It returns how many went; zero:
	// there are none.
	Sweep(ctx context.Context, log, cut int64) (int64, error)
	// Standing counts the records of a log that are here.
	Standing(ctx context.Context, log int64) (int64, error)
	SignedReader
	Holds
}

// SignedReader is a Reader that finds single checkpoints.
type SignedReader interface {
	Reader
	// Newest returns the largest checkpoint of a log, or nil if there is none.
	Newest(ctx context.Context, origin string) (*rows.AuditCheckpoint, error)
	// HandOvers returns the checkpoints of a log by which a key has handed over to another, the oldest first.
	HandOvers(ctx context.Context, origin string) ([]string, error)
}

// Reader reads logs. Its methods may be called concurrently.
type Reader interface {
	// Logs returns all logs, in the order in which they were opened.
	Logs(ctx context.Context) ([]*rows.AuditLog, error)
	// Last returns the number of the last record that stands in a log, or zero.
	Last(ctx context.Context, log int64) (int64, error)
	// Records calls yield for up to limit records of a log that follow a number, in order, without
	// their values. The record and what it points to are good until yield returns.
	Records(ctx context.Context, log, after int64, limit int, yield func(r *Stored) error) error
	// Values calls yield for the values of the records from first to last, in order.
	Values(ctx context.Context, log, first, last int64, yield func(seq int64, v Value) error) error
	// Tile returns the hashes of a tile, or nil if there is none. The result may be kept.
	Tile(ctx context.Context, log, level, number int64) ([]byte, error)
	// Gaps calls yield for the ranges that a copy lacks, in order.
	Gaps(ctx context.Context, log int64, yield func(first, last int64, hash Hash) error) error
	// Checkpoints calls yield for up to limit checkpoints of a log that are larger than a size, in
	// order.
	Checkpoints(ctx context.Context, origin string, size int64, limit int, yield func(c *rows.AuditCheckpoint) error) error
}

// Stored is a record as it is stored.
type Stored struct {
	Seq    int64
	Leaf   []byte
	Hash   []byte  // chain hash
	Values []Value // that exist
	// SameColumns reports whether the columns that stand beside the leaf are those of the record. Nil:
	// there are none.
	SameColumns func(r *Record) bool
}
