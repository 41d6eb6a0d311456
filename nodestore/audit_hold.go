package nodestore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	// lockHolds keeps other changes that make holds or heed them from happening at the same time.
	lockHolds = `SELECT log FROM hf_audit_log WHERE log > 0 ORDER BY log LIMIT 1 FOR UPDATE`
	dropHold  = `DELETE FROM hf_audit_hold WHERE name = $1`
)

// lockedHolds locks the holds until the transaction ends. What the transaction reads of them later is what it goes by.
func lockedHolds(tx side.Tx) error {
	var log int64
	return tx.Read(lockHolds, nil, func(scan side.Scan) error { return scan(&log) })
}

var _ audit.Holds = (*Audit)(nil)

// Holds implements audit.Holds.
func (a *Audit) Holds(ctx context.Context) (list []audit.Hold, err error) {
	if err := a.db.EachRow(ctx, rows.Range{Table: rows.Of((*rows.AuditHold)(nil))}, func(r rows.Row) error {
		row := r.(*rows.AuditHold) //nolint:forcetypeassert // asked for
		h := audit.Hold{Name: row.Name, Reason: row.Reason, Actor: row.Actor, Since: a.db.Time(row.Since), At: row.Since}
		if err := json.Unmarshal([]byte(row.Filter), &h.Filter); err != nil {
			return fmt.Errorf("hold %q: %w", h.Name, err)
		}
		list = append(list, h)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list audit holds: %w", err)
	}
	return list, nil
}

// Hold implements audit.Holds.
func (a *Audit) Hold(ctx context.Context, h *audit.Hold) error {
	filter, err := json.Marshal(h.Filter)
	if err == nil {
		row := rows.AuditHold{Name: h.Name, Filter: string(filter), Reason: h.Reason, Actor: h.Actor, Since: rows.Now}
		err = a.decided(ctx, audit.CodeHold, h.Name, h.Actor, audit.Decision{Filter: &h.Filter, Reason: h.Reason}, holdfast.ErrConflict,
			func(tx side.Tx) (int64, error) {
				if err := lockedHolds(tx); err != nil { // so that a later hold has a later instant
					return 0, err
				}
				return tx.Add(&row)
			})
	}
	if err != nil {
		return fmt.Errorf("make audit hold %q: %w", h.Name, err)
	}
	return nil
}

// Release implements audit.Holds.
func (a *Audit) Release(ctx context.Context, name, reason, actor string) error {
	if err := a.decided(ctx, audit.CodeRelease, name, actor, audit.Decision{Reason: reason}, holdfast.ErrNotFound,
		func(tx side.Tx) (int64, error) { return tx.Exec(dropHold, name) }); err != nil {
		return fmt.Errorf("end audit hold %q: %w", name, err)
	}
	return nil
}

// decided makes a change that is an entry of the journal.
func (a *Audit) decided(ctx context.Context, code, subject, actor string, d audit.Decision, unchanged error, change func(tx side.Tx) (int64, error)) error {
	detail, err := json.Marshal(d)
	if err != nil {
		return err
	}
	e := holdfast.Entry{Kind: holdfast.Called, Code: code, Subject: subject, Actor: actor, Outcome: holdfast.Succeeded, Detail: detail}
	return named(ctx, a.db, side.Cost{LastRoom: true}, &e, unchanged, change)
}
