package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
)

// workFunc is work for which a type of its own would say nothing more.
type workFunc func(tx *writeTx) error

func (f workFunc) apply(tx *writeTx) error { return f(tx) }
func (f workFunc) size() (int, int)        { return 1, 0 }

// ConfigureLane implements holdfast.Lanes.
func (db *DB) ConfigureLane(ctx context.Context, destination string, s holdfast.LaneSettings) error {
	err := db.writer.do(ctx, workFunc(func(tx *writeTx) error {
		l, err := tx.lane(destination)
		if err != nil || l.strict == s.Strict {
			return err
		}
		if _, err := tx.exec(setLaneStrict, l.id, asBit(s.Strict)); err != nil {
			return err
		}
		tx.after = append(tx.after, func() { l.strict = s.Strict })
		return nil
	}))
	if err != nil {
		return fmt.Errorf("configure lane %s: %w", destination, err)
	}
	return nil
}

// SetLaneFault implements holdfast.Lanes.
func (db *DB) SetLaneFault(ctx context.Context, destination, problem string) error {
	err := db.writer.do(ctx, workFunc(func(tx *writeTx) error {
		l, err := tx.lane(destination)
		if err != nil {
			return err
		}
		if problem == "" {
			_, err = tx.exec(setLaneFault, l.id, nil, nil)
		} else {
			_, err = tx.exec(setLaneFault, l.id, problem, tx.tick())
		}
		return err
	}))
	if err != nil {
		return fmt.Errorf("note fault of lane %s: %w", destination, err)
	}
	return nil
}

// LaneFaults implements holdfast.Lanes.
func (db *DB) LaneFaults(ctx context.Context) (list []holdfast.LaneFaultInfo, err error) {
	rows, err := db.readers.QueryContext(ctx, `SELECT destination, fault, fault_since FROM hf_lane WHERE fault IS NOT NULL`)
	if err != nil {
		return nil, fmt.Errorf("read lane faults: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var f holdfast.LaneFaultInfo
		var since sql.NullInt64
		if err := rows.Scan(&f.Destination, &f.Problem, &since); err != nil {
			return nil, fmt.Errorf("read lane faults: %w", err)
		}
		f.Since = db.wall(since)
		list = append(list, f)
	}
	return list, rows.Err()
}
