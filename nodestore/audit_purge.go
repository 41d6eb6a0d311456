package nodestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	oldRecords = `SELECT seq, stored, hash FROM hf_audit WHERE log = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4`
	cutLog     = `UPDATE hf_audit_log SET cut = $2, cut_hash = $3 WHERE log = $1 AND cut < $2 AND size >= $2
		AND (SELECT coalesce(max(since), 0) FROM hf_audit_hold WHERE name > '') <= $4` // no name is empty
	cutGaps  = `DELETE FROM hf_audit_gap WHERE log = $1 AND last <= $2`
	cutNotes = `DELETE FROM hf_audit_checkpoint WHERE origin = (SELECT origin FROM hf_audit_log WHERE log = $1) AND size <= $2 AND note NOT LIKE '%key %key %'`

	sweptRecords = `SELECT seq FROM hf_audit WHERE log = $1 AND seq <= $2 ORDER BY seq LIMIT 500`
	sweepRecords = `DELETE FROM hf_audit WHERE log = $1 AND seq BETWEEN $2 AND $3`
	sweepValues  = `DELETE FROM hf_audit_value WHERE log = $1 AND seq BETWEEN $2 AND $3`
)

// errYoung ends the reading of old records.
var errYoung = errors.New("not old")

// Old implements audit.Store.
func (a *Audit) Old(ctx context.Context, log, after, last int64, keep time.Duration, limit int) (p audit.Prefix, err error) {
	clock, err := a.db.Clock(ctx)
	if err != nil {
		return p, fmt.Errorf("find old audit records: %w", err)
	}
	age := rows.Instant(rows.Micros(keep))
	var first, end rows.Instant
	err = a.db.Read(ctx, oldRecords, []any{log, after, last, int64(limit)}, func(scan side.Scan) error {
		var seq, stored int64
		var hash []byte
		if err := scan(&seq, &stored, &hash); err != nil {
			return err
		}
		if at := rows.Instant(stored); clock.Judge(at+age, keep) != belief.Over {
			return errYoung
		} else if end = at; p.Count == 0 {
			p.First, first = seq, at
		}
		p.Last, p.Count = seq, p.Count+1
		copy(p.Hash[:], hash)
		return nil
	})
	if err != nil && !errors.Is(err, errYoung) {
		return audit.Prefix{}, fmt.Errorf("find old audit records: %w", err)
	}
	if p.Count > 0 {
		p.Since, p.Until = a.db.Time(first), a.db.Time(end)
	}
	return p, nil
}

// Cut implements audit.Store.
func (a *Audit) Cut(ctx context.Context, log, last int64, hash audit.Hash, newest rows.Instant) (done bool, err error) {
	if err := a.db.Change(ctx, side.Cost{LastRoom: true}, func(tx side.Tx) error {
		if err := lockedHolds(tx); err != nil {
			return err
		}
		n, err := tx.Exec(cutLog, log, last, hash[:], int64(newest))
		if done = n > 0; err != nil || !done {
			return err
		}
		if _, err = tx.Exec(cutGaps, log, last); err == nil {
			_, err = tx.Exec(cutNotes, log, last)
		}
		return err
	}); err != nil {
		return false, fmt.Errorf("cut an audit log at %d: %w", last, err)
	}
	return done, nil
}

// Sweep implements audit.Store.
func (a *Audit) Sweep(ctx context.Context, log, cut int64) (gone int64, err error) {
	var first, last int64
	err = a.db.Read(ctx, sweptRecords, []any{log, cut}, func(scan side.Scan) error {
		err := scan(&last)
		if first == 0 {
			first = last
		}
		return err
	})
	if err == nil && last > 0 {
		err = a.db.Change(ctx, side.Cost{Rows: 500, LastRoom: true}, func(tx side.Tx) error {
			if _, err := tx.Exec(sweepValues, log, first, last); err != nil {
				return err
			}
			gone, err = tx.Exec(sweepRecords, log, first, last)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("delete purged audit records: %w", err)
	}
	return gone, nil
}
