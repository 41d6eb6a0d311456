package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// Bits of the mask that says which notices are wanted.
const (
	notifyParked  = 1
	notifyExpired = 2
)

// NotifyEnded implements holdfast.Store. The nodes of a database must ask for the same notices: the
// last call decides for all.
func (db *DB) NotifyEnded(ctx context.Context, parked, expired bool) (waiting bool, err error) {
	mask := 0
	if parked {
		mask |= notifyParked
	}
	if expired {
		mask |= notifyExpired
	}
	err = db.unbound(ctx, func(tx *ownTx) error { return tx.exec(setNotifyMask, strconv.Itoa(mask)) })
	if err == nil {
		err = db.read(ctx, isWaiting, []any{holdfast.EndedDestination}, func(rows pgx.Rows) error { return rows.Scan(&waiting) })
	}
	if err != nil {
		return false, fmt.Errorf("ask for notices: %w", err)
	}
	return waiting, nil
}

// notices writes the messages that tell callbacks about the end of other messages, if there are
// callbacks.
func (tx *ownTx) notices(seqs []int64, state holdfast.State) error {
	if len(seqs) == 0 {
		return nil
	}
	bit := notifyParked
	if state == holdfast.Expired {
		bit = notifyExpired
	}
	var list []holdfast.Ended
	if err := tx.query(endedRows, []any{seqs, bit, holdfast.EndedDestination}, func(rows pgx.Rows) error {
		var id []byte
		var at int64
		e := holdfast.Ended{State: state}
		err := rows.Scan(&id, &e.Source, &e.Kind, &e.Endpoint, &e.Destination, &e.CorrelationID, &e.OrderingKey, &e.Reason, &e.Cycle, &e.Tries, &at, &e.Error, &e.Code)
		e.ID, e.At = idFrom(id), tx.db.clock.wall(at)
		list = append(list, e)
		return err
	}); err != nil || len(list) == 0 {
		return err
	}
	k := &enqueue{entries: make([]entry, len(list))}
	for i := range list {
		m, err := list[i].Message()
		if err != nil {
			return err
		}
		e := &k.entries[i]
		if err := e.fill(m); err != nil {
			return err
		}
		e.minted = true
		if e.route, err = tx.route(e.names()); err != nil {
			return err
		}
	}
	conflicts, err := tx.insert([]*enqueue{k})
	if err == nil {
		err = conflicts[0]
	}
	return err
}

// route is DB.route inside a transaction of the store. That is short enough for others to wait for
// it.
func (tx *ownTx) route(k routeKey) (r route, err error) {
	n := tx.db.names
	n.mu.Lock()
	turn := n.turn
	r, ok := n.routes[k]
	n.mu.Unlock()
	if ok {
		return r, nil
	}
	one := func(id *int32) func(rows pgx.Rows) error {
		return func(rows pgx.Rows) error { return rows.Scan(id) }
	}
	for range 3 { // if two transactions insert it at once, the loser finds it at its second try
		if r.lane == 0 {
			if err := tx.query(internLane, []any{k.destination}, one(&r.lane)); err != nil {
				return r, err
			}
		}
		if r.lane == 0 {
			continue
		}
		if err := tx.query(internRoute, []any{r.lane, k.source, string(k.kind), k.endpoint}, one(&r.route)); err != nil {
			return r, err
		}
		if r.route != 0 {
			tx.after = append(tx.after, func() { n.remember(turn, k, r) })
			return r, nil
		}
	}
	return r, fmt.Errorf("names of %s: neither new nor known", k.destination)
}
