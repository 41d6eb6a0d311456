package node

import (
	"errors"
	"io/fs"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// Reason says why a store cannot be used, for a caller that branches on it.
type Reason int

// The reasons.
const (
	Unexplained Reason = iota // includes faults that may go away by themselves
	InUse                     // a node has it, or has this node's name
	Absent                    // a named file, folder or database does not exist
	Unfit                     // it is damaged, not ours, of a newer release, or does not keep what it must
	Forbidden                 // this user may not use it
	Barred                    // a move forbids it, or what it holds does not allow one
)

// ErrRunning says that a node uses the data folder.
var ErrRunning = sqlite.ErrOwned

// ranError is the error of a node that was running. Whatever ended it, the next start examines the store
// anew, sets damage aside and goes on.
type ranError struct{ error }

func (e *ranError) Unwrap() error { return e.error }

// Why sorts an error of opening, copying or migrating a store. The error of a node that was already running
// is Unexplained: starting it again may help.
func Why(err error) Reason {
	if _, ran := errors.AsType[*ranError](err); ran {
		return Unexplained
	}
	for _, known := range []struct {
		err    error
		reason Reason
	}{
		{sqlite.ErrOwned, InUse},
		{postgres.ErrNodeTaken, InUse},
		{sqlite.ErrLinked, InUse},
		{storecopy.ErrInUse, InUse},
		{storecopy.ErrMoved, Barred},
		{storecopy.ErrUnfinished, Barred},
		{storecopy.ErrNotEmpty, Barred},
		{storecopy.ErrChanged, Barred},
		{storecopy.ErrUsed, Barred},
		{storecopy.ErrElsewhere, Barred},
		{storecopy.ErrContent, Barred},
		{storecopy.ErrSame, Unfit},
		{storecopy.ErrSchema, Unfit},
		{fs.ErrNotExist, Absent},
		{holdfast.ErrNotFound, Absent},
		{postgres.ErrRights, Forbidden},
		{postgres.ErrTooOld, Unfit},
		{postgres.ErrNewer, Unfit},
		{postgres.ErrForeign, Unfit},
		{postgres.ErrPooler, Unfit},
		{postgres.ErrNotDurable, Unfit},
		{postgres.ErrEncoding, Unfit},
		{sqlite.ErrDamaged, Unfit},
		{sqlite.ErrForeign, Unfit},
		{sqlite.ErrNewer, Unfit},
		{fs.ErrInvalid, Unfit},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	return Unexplained
}
