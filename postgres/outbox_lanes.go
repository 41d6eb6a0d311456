package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// freePage is how many ordering keys one transaction frees.
const freePage = 100

// ConfigureLane implements holdfast.Lanes. When strict order is switched off, stopped keys
// continue, one page of them per transaction. If the process dies in between, the next call does
// the rest.
func (db *DB) ConfigureLane(ctx context.Context, destination string, s holdfast.LaneSettings) error {
	if err := db.configureLane(ctx, destination, s); err != nil {
		return fmt.Errorf("configure lane %s: %w", destination, err)
	}
	return nil
}

func (db *DB) configureLane(ctx context.Context, destination string, s holdfast.LaneSettings) error {
	if err := db.onLane(ctx, destination, func(tx *ownTx, lane int32) error { return tx.exec(setStrict, lane, s.Strict) }); err != nil || s.Strict {
		return err
	}
	for from, more := "", true; more; {
		if err := db.onLane(ctx, destination, func(tx *ownTx, lane int32) error {
			keys, err := tx.stoppedKeys(lane, from)
			if err != nil {
				return err
			}
			if more = len(keys) == freePage; len(keys) > 0 {
				last := keys[len(keys)-1].key
				tx.after = append(tx.after, func() { from = last })
			}
			if err := tx.lockKeys(keys); err != nil {
				return err
			}
			return tx.placeKeys(keys)
		}); err != nil {
			return err
		}
	}
	return nil
}

// onLane runs fn in a transaction, with the number of a destination's lane.
func (db *DB) onLane(ctx context.Context, destination string, fn func(tx *ownTx, lane int32) error) error {
	if err := db.usable(ctx); err != nil {
		return err
	}
	return anew(func() error {
		turn, _ := db.past.is()
		lane, err := db.lane(ctx, destination)
		if err != nil {
			return err
		}
		return db.own(ctx, func(tx *ownTx) error {
			if err := tx.still(turn); err != nil {
				return err
			}
			return fn(tx, lane)
		})
	})
}

func (tx *ownTx) stoppedKeys(lane int32, from string) (keys []orderingKey, err error) {
	err = tx.query(stoppedKeys, []any{lane, from, freePage}, func(rows pgx.Rows) error {
		k := orderingKey{lane: lane}
		err := rows.Scan(&k.key)
		keys = append(keys, k)
		return err
	})
	return keys, err
}

// SetLaneFault implements holdfast.Lanes.
func (db *DB) SetLaneFault(ctx context.Context, destination, problem string) error {
	if err := db.onLane(ctx, destination, func(tx *ownTx, lane int32) error {
		return tx.exec(setLaneFault, lane, nullText(cleanText(problem)))
	}); err != nil {
		return fmt.Errorf("note fault of lane %s: %w", destination, err)
	}
	return nil
}

// LaneFaults implements holdfast.Lanes.
func (db *DB) LaneFaults(ctx context.Context) (list []holdfast.LaneFaultInfo, err error) {
	err = db.read(ctx, laneFaults, nil, func(rows pgx.Rows) error {
		var f holdfast.LaneFaultInfo
		var since int64
		err := rows.Scan(&f.Destination, &f.Problem, &since)
		f.Since = db.clock.wall(since)
		list = append(list, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read lane faults: %w", err)
	}
	return list, nil
}

// PauseLane implements holdfast.Lanes.
func (db *DB) PauseLane(ctx context.Context, destination, actor string) error {
	if err := db.decideLane(ctx, pauseLane, holdfast.Paused, destination, actor); err != nil {
		return fmt.Errorf("pause lane %s: %w", destination, err)
	}
	return nil
}

// ResumeLane implements holdfast.Lanes.
func (db *DB) ResumeLane(ctx context.Context, destination, actor string) error {
	if err := db.decideLane(ctx, resumeLane, holdfast.Resumed, destination, actor); err != nil {
		return fmt.Errorf("resume lane %s: %w", destination, err)
	}
	return nil
}

func (db *DB) decideLane(ctx context.Context, how string, kind holdfast.EntryKind, destination, actor string) error {
	return db.onLane(ctx, destination, func(tx *ownTx, lane int32) error {
		return tx.query(how, []any{lane, nullText(cleanText(actor))}, func(rows pgx.Rows) error {
			tx.note(&holdfast.Entry{Kind: kind, Subject: destination, Actor: actor})
			return rows.Scan(nil)
		})
	})
}

// LaneDecisions implements holdfast.Lanes.
func (db *DB) LaneDecisions(ctx context.Context) (list []holdfast.LaneDecision, err error) {
	err = db.read(ctx, laneDecisions, nil, func(rows pgx.Rows) error {
		var d holdfast.LaneDecision
		var at int64
		err := rows.Scan(&d.Destination, &d.Paused, &d.Actor, &at)
		d.At, d.Version = db.clock.wall(at), at
		list = append(list, d)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read decisions about lanes: %w", err)
	}
	return list, nil
}
