package audit

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Codes of the Called entries that a Log makes records of itself. They are stored and never change.
const (
	codeOpen    = "audit.open" // begins an empty log
	CodeHold    = "audit.hold"
	CodeRelease = "audit.release"
	CodeErase   = "audit.erase"
	CodePurge   = "audit.purge"
	CodeKey     = "audit.key"
	CodeGap     = "audit.gap" // see Missed
)

// ownKind returns the kind of the record that a Log makes of an entry itself, or "" if Describe does.
func ownKind(e *holdfast.Entry) Kind {
	if e.Kind != holdfast.Called || !strings.HasPrefix(e.Code, "audit.") {
		return ""
	}
	switch e.Code {
	case codeOpen:
		return Opened
	case CodeHold:
		return HoldKind
	case CodeRelease:
		return Release
	case CodeErase:
		return EraseKind
	case CodePurge:
		return Purged
	case CodeKey:
		return KeyChange
	case CodeGap:
		return Gap
	}
	return ""
}

// Missed is what a record of a gap says: how many calls have no record, or may have none, because the journal could not
// be written, as on a full disk.
type Missed struct {
	Calls int64     `json:"calls"`
	Since time.Time `json:"since"` // the first of them
	Until time.Time `json:"until"` // the last
}

// own returns the record of an entry that the log makes itself.
func (l *Log) own(e *holdfast.Entry) Record {
	r := l.about(ownKind(e), e.At)
	r.Target, r.Extra = e.Subject, sealFilter(&r, e.Detail)
	if r.Kind == Gap {
		r.Status = Failed
	}
	if e.Actor != "" {
		r.Actor, r.Channel = e.Actor, Operator
	}
	return r
}

// about returns a record about the log itself.
func (l *Log) about(kind Kind, at time.Time) Record {
	return Record{
		ID: EventID(at, []byte(holdfast.NewID())), Occurred: at.Truncate(time.Microsecond), Channel: System, Kind: kind, Status: Success,
		Site: l.Site, Node: l.Node, Actor: SystemActor,
	}
}

// Former is what the first record of a log says about the log before it.
type Former struct {
	Origin string `json:"former"`
	Size   int64  `json:"size"` // records that the store has of it
	Head   string `json:"head"` // chain hash of the last of them, hex
	// Checkpoint is the largest one that was found, a signed note. Lost is how many records the store
	// does not have of those that this checkpoint, or the log, covers and no purge has taken.
	Checkpoint string `json:"checkpoint,omitempty"`
	Lost       int64  `json:"lost"`

	by string // log that has the record, and its number there
	at int64
}

// opened returns the first record of a log.
func (l *Log) opened(ctx context.Context) (Record, error) {
	r := l.about(Opened, time.Now())
	logs, err := l.Store.Logs(ctx)
	if err != nil {
		return r, fmt.Errorf("read audit logs: %w", err)
	}
	var former *rows.AuditLog
	for _, log := range logs {
		if log.Own && log.Log != l.log.Log {
			former = log
		}
	}
	if former == nil {
		return r, nil
	}
	f := Former{Origin: former.Origin, Size: former.Size, Head: hex.EncodeToString(former.Head)}
	stands, err := l.Store.Standing(ctx, former.Log)
	if err != nil {
		return r, fmt.Errorf("count the records of %s: %w", f.Origin, err)
	}
	newest, err := l.Store.Newest(ctx, f.Origin)
	if err != nil {
		return r, fmt.Errorf("read checkpoints of %s: %w", f.Origin, err)
	}
	covered := f.Size
	if newest != nil {
		f.Checkpoint, covered = newest.Note, max(newest.Size, covered)
	}
	if l.Witness != nil && l.Key != nil { // one that cannot be read keeps no log from being opened
		if c, err := l.readWitness(f.Origin); err != nil {
			l.Logger.WarnContext(ctx, "the new audit log may not tell all that the one before has lost", slog.Any("error", err))
		} else if c.Size > 0 && (newest == nil || c.Size > newest.Size) {
			f.Checkpoint, covered = c.note, max(c.Size, covered)
		}
	}
	f.Lost = max(covered-former.Cut-stands, 0)
	r.Extra, err = json.Marshal(f)
	return r, err
}
