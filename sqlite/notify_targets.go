package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

// Targets implements notify.Store.
func (db *DB) Targets(ctx context.Context, message holdfast.ID) (list []notify.Target, err error) {
	id, err := holdfast.ParseID(string(message))
	if err != nil {
		return nil, fmt.Errorf("read recipients: %w: %w", holdfast.ErrInvalid, err)
	}
	found, err := db.often(ctx, targetsOf, idValue(id))
	if err == nil {
		list, err = db.scanTargets(found)
	}
	err = db.noted(err)
	if err != nil {
		return nil, fmt.Errorf("read recipients of %s: %w", id, err)
	}
	return list, nil
}

func (db *DB) scanTargets(found *sql.Rows) (list []notify.Target, err error) {
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var t notify.Target
		var at int64
		if err := found.Scan(&t.Channel, &t.Address, &t.Name, &t.Result, &t.Code, &t.Text, &t.Receipt, &t.Maybe, &t.Attempts, &t.Cycle,
			&t.Server, &t.TLS, &t.Truncated, &at); err != nil {
			return nil, err
		}
		t.At = db.clock.wall(at)
		list = append(list, t)
	}
	return list, found.Err()
}

// reached is the work of one RecordTargets call.
type reached struct {
	id      holdfast.ID
	list    []notify.Target
	unknown bool
}

// RecordTargets implements notify.Store.
func (db *DB) RecordTargets(ctx context.Context, message holdfast.ID, list ...notify.Target) error {
	id, err := holdfast.ParseID(string(message))
	if err != nil {
		return fmt.Errorf("record recipients: %w: %w", holdfast.ErrInvalid, err)
	}
	if len(list) == 0 {
		return nil
	}
	k := &reached{id: id, list: list}
	if err := db.writer.do(ctx, k); err != nil {
		return fmt.Errorf("record recipients of %s: %w", id, err)
	}
	if k.unknown {
		return fmt.Errorf("record recipients of %s: %w", id, holdfast.ErrNotFound)
	}
	return nil
}

func (k *reached) size() (int, int) { return 1 + len(k.list)/2, 256 * len(k.list) }

func (k *reached) apply(tx *writeTx) error {
	var seq int64
	found, err := tx.conn.one(findSeq, func(v []driver.Value) error {
		seq = asInt(v[0])
		return nil
	}, idValue(k.id))
	if k.unknown = !found; err != nil || !found {
		return err
	}
	for i := range k.list {
		t := &k.list[i]
		n, err := tx.write(0, replaceRow, []rows.Row{notify.TargetRow(seq, t)})
		if err == nil && n > 0 {
			err = tx.note(seq, &holdfast.Entry{
				Kind: holdfast.Reached, Subject: t.Address, Cycle: t.Cycle, Attempt: t.Attempts, Outcome: t.Result.Outcome(), Code: t.Code,
				Detail: notify.ReachedDetail(t),
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
