package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/holdfast-mq/holdfast"
)

// Bits of metaNotify.
const (
	notifyParked  int64 = 1
	notifyExpired int64 = 2
)

// NotifyEnded implements holdfast.Store.
func (db *DB) NotifyEnded(ctx context.Context, parked, expired bool) (waiting bool, err error) {
	mask := int64(0)
	if parked {
		mask |= notifyParked
	}
	if expired {
		mask |= notifyExpired
	}
	if db.notify.Load() != mask {
		if err := db.writer.do(ctx, workFunc(func(tx *writeTx) error {
			tx.after = append(tx.after, func() { db.notify.Store(mask) })
			_, err := tx.exec(setMeta, metaNotify, mask)
			return err
		})); err != nil {
			return false, fmt.Errorf("ask for notices: %w", err)
		}
	}
	return db.Counts().Lanes[holdfast.EndedDestination].Pending > 0, nil
}

// notice writes the message that tells a callback how another message has ended.
func (tx *writeTx) notice(seq int64, l *lane, state holdfast.State) error {
	bit := notifyParked
	if state == holdfast.Expired {
		bit = notifyExpired
	}
	if tx.w.db.notify.Load()&bit == 0 || l.name == holdfast.EndedDestination {
		return nil
	}
	e := holdfast.Ended{Destination: l.name, State: state, At: tx.w.db.clock.wall(tx.now)}
	if _, err := tx.conn.one(endedRow, func(v []driver.Value) error {
		e.ID, e.Source, e.Kind, e.Endpoint = idFrom(v[0]), asText(v[1]), holdfast.Kind(asText(v[2])), asText(v[3])
		e.CorrelationID, e.OrderingKey, e.Reason = asText(v[4]), asText(v[5]), holdfast.Reason(asText(v[6]))
		e.Cycle, e.Tries, e.Error, e.Code = int(asInt(v[7])), int(asInt(v[8])), asText(v[9]), asText(v[10])
		return nil
	}, seq); err != nil {
		return err
	}
	m, err := e.Message()
	if err != nil {
		return err
	}
	_, err = tx.insert(&entry{m: m, id: idValue(m.ID), minted: true, hash: messageHash(&m, "", "")})
	return err
}
