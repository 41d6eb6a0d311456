package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
)

// workFunc is work that needs no type of its own.
type workFunc func(tx *writeTx) error

func (f workFunc) apply(tx *writeTx) error { return f(tx) }
func (f workFunc) size() (int, int)        { return 1, 0 }

// freePage is how many ordering keys one transaction frees.
const freePage = 100

// ConfigureLane implements holdfast.Lanes. When strict order ends, keys that it has stopped go on.
// Each transaction frees a page of them. If the process dies in between, the next call begins from
// the start.
func (db *DB) ConfigureLane(ctx context.Context, destination string, s holdfast.LaneSettings) error {
	k := &configure{destination: destination, strict: s.Strict}
	for !k.done {
		if err := db.writer.do(ctx, k); err != nil {
			return fmt.Errorf("configure lane %s: %w", destination, err)
		}
		k.from = k.reached
	}
	db.lanes.mu.Lock()
	defer db.lanes.mu.Unlock()
	db.lanes.locked(destination).liveFirst = s.LiveFirst
	return nil
}

// configure is the work of one page of ConfigureLane.
type configure struct {
	destination   string
	strict        bool
	from, reached string // keys up to here are freed
	done          bool
}

func (k *configure) size() (int, int) { return freePage, 0 }

func (k *configure) apply(tx *writeTx) error {
	k.reached, k.done = k.from, true
	l, err := tx.lane(k.destination)
	switch {
	case err != nil:
		return err
	case k.strict:
		return tx.setOrder(l, orderStrict)
	case l.order == orderLoose:
		return nil
	}
	if err := tx.setOrder(l, orderFreeing); err != nil {
		return err
	}
	for range freePage {
		found, err := tx.conn.one(keyAfter, func(v []driver.Value) error {
			k.reached = asText(v[0])
			return nil
		}, l.id, k.reached)
		if err != nil {
			return err
		}
		if !found {
			return tx.setOrder(l, orderLoose)
		}
		if err := tx.placeKey(l, k.reached); err != nil {
			return err
		}
	}
	k.done = false
	return nil
}

func (tx *writeTx) setOrder(l *lane, order int64) error {
	was := l.order
	if was == order {
		return nil
	}
	if _, err := tx.exec(setLaneOrder, l.id, order); err != nil {
		return err
	}
	l.order = order
	tx.undo = append(tx.undo, func() { l.order = was })
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
	rows, err := db.query(ctx, laneFaults)
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

func (db *DB) decideLane(ctx context.Context, how statement, kind holdfast.EntryKind, destination, actor string) error {
	return db.writer.do(ctx, workFunc(func(tx *writeTx) error {
		l, err := tx.lane(destination)
		if err != nil {
			return err
		}
		n, err := tx.exec(how, l.id, tx.tick(), nullText(actor))
		if err != nil || n == 0 {
			return err
		}
		return tx.note(0, &holdfast.Entry{Kind: kind, Subject: destination, Actor: actor})
	}))
}

// LaneDecisions implements holdfast.Lanes.
func (db *DB) LaneDecisions(ctx context.Context) (list []holdfast.LaneDecision, err error) {
	rows, err := db.often(ctx, laneDecisions)
	if err != nil {
		return nil, fmt.Errorf("read decisions about lanes: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var d holdfast.LaneDecision
		var at sql.NullInt64
		if err := rows.Scan(&d.Destination, &d.Paused, &d.Actor, &at); err != nil {
			return nil, fmt.Errorf("read decisions about lanes: %w", err)
		}
		d.At, d.Version = db.wall(at), at.Int64
		list = append(list, d)
	}
	return list, rows.Err()
}
