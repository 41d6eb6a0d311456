package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

// reachedMost bounds the weight of one transaction, in recipients.
const reachedMost = 10000

// Targets implements notify.Store.
func (db *DB) Targets(ctx context.Context, message holdfast.ID) ([]notify.Target, error) {
	id, err := holdfast.ParseID(string(message))
	if err != nil {
		return nil, fmt.Errorf("read recipients: %w: %w", holdfast.ErrInvalid, err)
	}
	list, err := db.targets(ctx, targetsOf, idBytes(id))
	if err != nil {
		return nil, fmt.Errorf("read recipients of %s: %w", id, err)
	}
	return list, nil
}

func (db *DB) targets(ctx context.Context, sql string, of any) (list []notify.Target, err error) {
	err = db.read(ctx, sql, []any{of}, func(found pgx.Rows) error {
		var t notify.Target
		var result int16
		var at int64
		err := found.Scan(&t.Channel, &t.Address, &t.Name, &result, &t.Code, &t.Text, &t.Receipt, &t.Maybe, &t.Attempts, &t.Cycle, &t.Server, &t.TLS, &t.Truncated, &at)
		t.Result, t.At = notify.Result(result), db.clock.wall(at)
		list = append(list, t)
		return err
	})
	return list, err
}

// reached is the work of one RecordTargets call.
type reached struct {
	id      []byte
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
	k := &reached{id: idBytes(id), list: list}
	if err = db.usable(ctx); err == nil {
		err = db.reached.do(ctx, k, len(list))
	}
	if err == nil && k.unknown {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("record recipients of %s: %w", id, err)
	}
	return nil
}

// reachedAll writes the calls of one group. If a fault may be one call's, it writes each call by
// itself to find out.
func (db *DB) reachedAll(ctx context.Context, list []*call[*reached]) {
	err := db.unbound(ctx, func(tx *ownTx) error {
		tx.impatient = true
		return tx.reached(list)
	})
	if len(list) > 1 && blames(err) || isLocked(err) {
		byThemselves(db, list, db.reachedAlone)
		return
	}
	answer(list, err)
}

// reachedAlone writes one call, and waits for the locks that it needs.
func (db *DB) reachedAlone(ctx context.Context, list []*call[*reached]) {
	answer(list, db.unbound(ctx, func(tx *ownTx) error { return tx.reached(list) }))
}

func (tx *ownTx) reached(calls []*call[*reached]) error {
	ids := make([][]byte, len(calls))
	for i, c := range calls {
		ids[i] = c.work.id
	}
	seqs, followed := map[string]int64{}, false
	if err := tx.query(findSeqs, []any{ids}, func(found pgx.Rows) error {
		var id []byte
		var seq int64
		err := found.Scan(&id, &seq, &followed)
		seqs[string(id)] = seq
		return err
	}); err != nil {
		return err
	}
	var list []rows.Row
	var of, results, attempts []int64
	var channels, addresses []string
	for _, c := range calls {
		seq, found := seqs[string(c.work.id)]
		if c.work.unknown = !found; !found {
			continue
		}
		for i := range c.work.list {
			t := notify.TargetRow(seq, &c.work.list[i])
			list, of, results, attempts = append(list, t), append(of, seq), append(results, t.Result), append(attempts, t.Attempts)
			channels, addresses = append(channels, cleanText(t.Channel)), append(addresses, cleanText(t.Address))
		}
	}
	if len(list) == 0 {
		return nil
	}
	if err := tx.put(list...); err != nil || !followed {
		return err
	}
	tx.last = append(tx.last, statement{noteTargets, []any{of, channels, addresses, results, attempts}, nil})
	return nil
}
