package nodestore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	newestHold = `SELECT coalesce(max(since), 0) FROM hf_audit_hold WHERE name > ''` // no name is empty
	eraseValue = `DELETE FROM hf_audit_value WHERE log = $1 AND seq = $2 AND field = $3`
)

var _ audit.Eraser = (*Audit)(nil)

// EraseValues implements audit.Eraser.
func (a *Audit) EraseValues(ctx context.Context, log *rows.AuditLog, s *audit.Step) (gone int64, err error) {
	if err = a.db.Change(ctx, side.Cost{Rows: 2 * len(s.Places), LastRoom: true}, func(tx side.Tx) error {
		if err := lockedHolds(tx); err != nil {
			return err
		}
		var since int64
		err := tx.Read(newestHold, nil, func(scan side.Scan) error { return scan(&since) })
		if err == nil && rows.Instant(since) > s.Newest {
			err = audit.ErrHeld
		}
		if err != nil {
			return err
		}
		gone, err = eraseAll(tx, log, s)
		return err
	}); err != nil {
		return 0, fmt.Errorf("erase values of %s: %w", log.Origin, err)
	}
	return gone, nil
}

func eraseAll(tx side.Tx, log *rows.AuditLog, s *audit.Step) (int64, error) {
	d, tell := audit.Decision{Reason: s.Reason, Log: log.Origin}, s.Tell
	if err := tx.Read(isRevoked, []any{log.Site}, func(side.Scan) error { tell = false; return nil }); err != nil {
		return 0, err
	}
	for _, p := range s.Places {
		n, err := tx.Exec(eraseValue, log.Log, p.Seq, p.Field)
		if err != nil {
			return 0, err
		}
		if n > 0 && tell {
			if err := tx.Put(&rows.AuditErasure{Log: log.Log, Seq: p.Seq, Field: p.Field, Reason: s.Reason, Since: rows.Now}); err != nil {
				return 0, err
			}
		}
		if d.Values += n; n > 0 && !slices.Contains(d.Records, p.Seq) {
			d.Records = append(d.Records, p.Seq)
		}
	}
	detail, err := json.Marshal(d)
	if err == nil && d.Values > 0 {
		err = tx.Note(&holdfast.Entry{Kind: holdfast.Called, Code: audit.CodeErase, Subject: log.Origin, Actor: s.Actor, Outcome: holdfast.Succeeded, Detail: detail})
	}
	return d.Values, err
}
