package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// readOperation takes what the row of a purged message says: the columns that purgeMessage returns.
func readOperation(o *rows.Operation, v []driver.Value) {
	o.ID, o.Created, o.Settled, o.Tried = string(idFrom(v[0])), rows.Instant(asInt(v[2])), rows.Instant(asInt(v[3])), rows.None
	o.Failures, o.Tries, o.Cycle, o.Reason = asInt(v[4]), asInt(v[5]), asInt(v[6]), asText(v[7])
	if holdfast.State(o.State) == holdfast.Delivered {
		o.Tried = o.Settled // unless the history says otherwise
	}
}

// record writes what became of an operation, before its history is purged.
func (tx *writeTx) record(o *rows.Operation, route int64) error {
	names, err := tx.w.db.routeNames(tx.conn, route)
	if err != nil {
		return err
	}
	o.Source, o.Endpoint = names.source, names.endpoint
	if o.Cycle == 1 && o.Tries <= 1 && holdfast.State(o.State) == holdfast.Delivered {
		return tx.put(o) // nothing has failed
	}
	if _, err := tx.conn.one(lastFailure, func(v []driver.Value) error {
		if o.Error, o.Code = asText(v[0]), asText(v[1]); v[2] != nil {
			o.Tried = rows.Instant(asInt(v[2]))
		}
		return nil
	}, o.Seq); err != nil {
		return err
	}
	return tx.put(o)
}

// purgeOperations deletes some records of operations that ended longer ago than keep.
func (db *DB) purgeOperations(ctx context.Context, keep time.Duration) (more bool, err error) {
	if sane, _ := db.clock.look(); !sane || keep <= 0 {
		return false, nil
	}
	before := db.clock.guard.Before(db.clock.now(), micros(keep))
	var some int
	if err := db.oftenOne(ctx, pastOperation, []any{before}, &some); errors.Is(err, sql.ErrNoRows) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	more = true
	for done := 0; more && err == nil && done < sweepPage; done += sweepWrite {
		err = db.writer.do(ctx, workFunc(func(tx *writeTx) error {
			n, err := tx.exec(purgeOperations, before, int64(sweepWrite))
			more = n == sweepWrite
			return err
		}))
	}
	return more, err
}
