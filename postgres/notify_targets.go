package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// reachedMost is the weight of one transaction, in recipients.
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
	if db.gone.Load() {
		return nil, holdfast.ErrClosed
	}
	err = db.read(ctx, sql, []any{of}, func(rows pgx.Rows) error {
		var t notify.Target
		var result int16
		var at int64
		err := rows.Scan(&t.Channel, &t.Address, &t.Name, &result, &t.Code, &t.Text, &t.Receipt, &t.Maybe, &t.Attempts, &t.Cycle, &t.Server, &t.TLS, &t.Truncated, &at)
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

// reachedAll writes the calls of one group. A fault that may be one call's is
// found by writing each by itself.
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

// reachedAlone writes one call, and waits for whom it has to wait.
func (db *DB) reachedAlone(ctx context.Context, list []*call[*reached]) {
	answer(list, db.unbound(ctx, func(tx *ownTx) error { return tx.reached(list) }))
}

// targetKey is a row of hf_target.
type targetKey struct {
	seq              int64
	channel, address string
}

func (k targetKey) compare(o targetKey) int {
	return cmp.Or(cmp.Compare(k.seq, o.seq), cmp.Compare(k.channel, o.channel), cmp.Compare(k.address, o.address))
}

func (tx *ownTx) reached(calls []*call[*reached]) error {
	ids := make([][]byte, len(calls))
	for i, c := range calls {
		ids[i] = c.work.id
	}
	seqs := map[string]int64{}
	if err := tx.query(findSeqs, []any{ids}, func(rows pgx.Rows) error {
		var id []byte
		var seq int64
		err := rows.Scan(&id, &seq)
		seqs[string(id)] = seq
		return err
	}); err != nil {
		return err
	}
	// A row once, the last of its calls; what was accepted stays.
	rows := map[targetKey]*notify.Target{}
	for _, c := range calls {
		seq, found := seqs[string(c.work.id)]
		if c.work.unknown = !found; !found {
			continue
		}
		for i := range c.work.list {
			t := &c.work.list[i]
			k := targetKey{seq, cleanText(t.Channel), cleanText(t.Address)}
			if old := rows[k]; old == nil || old.Result != notify.Accepted {
				rows[k] = t
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return tx.exec(putTargets, targetArgs(rows)...)
}

// targetArgs are the parameters of putTargets, in one order, so that no two
// transactions wait for each other.
func targetArgs(rows map[targetKey]*notify.Target) []any {
	keys := make([]targetKey, 0, len(rows))
	for k := range rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, targetKey.compare)
	var seqs []int64
	var channels, addresses, names, codes, texts, receipts, servers, tls []string
	var results []int16
	var attempts, cycles []int32
	var maybe, truncated []bool
	for _, k := range keys {
		t := rows[k]
		seqs, channels, addresses, names = append(seqs, k.seq), append(channels, k.channel), append(addresses, k.address), append(names, cleanText(t.Name))
		results, codes, texts, receipts = append(results, int16(t.Result)), append(codes, cleanText(t.Code)), append(texts, cleanText(t.Text)), append(receipts, cleanText(t.Receipt))
		maybe, attempts, truncated = append(maybe, t.Maybe), append(attempts, int32(t.Attempts)), append(truncated, t.Truncated)
		cycles = append(cycles, int32(t.Cycle))
		servers, tls = append(servers, cleanText(t.Server)), append(tls, cleanText(t.TLS))
	}
	return []any{seqs, channels, addresses, names, results, codes, texts, receipts, maybe, attempts, cycles, servers, tls, truncated}
}
