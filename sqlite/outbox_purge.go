package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Purge implements holdfast.Sweepable. It deletes final rows that are past their retention, with
// their bodies and histories, a page at a time from the oldest on. It keeps the highest row, so
// that no seq is used twice.
func (db *DB) Purge(ctx context.Context, r holdfast.Retention) (int, bool, error) {
	// Only the owner purges. A salvage that is cut short would bring purged rows back.
	if !db.owns.Load() || db.ready() != nil {
		return 0, false, nil //nolint:nilerr // the next sweep does it
	}
	purged, more, err := db.purgeMessages(ctx, r)
	if err != nil {
		return purged, false, fmt.Errorf("purge: %w", err)
	}
	moreNotes, err := db.purgeNotes(ctx)
	if err != nil {
		return purged, false, fmt.Errorf("purge the journal: %w", err)
	}
	moreRecords, err := db.purgeOperations(ctx, r.Tracking)
	if err != nil {
		return purged, false, fmt.Errorf("purge records of operations: %w", err)
	}
	return purged, more || moreNotes || moreRecords, nil
}

// purgeNotes deletes some entries that are about no message of the outbox and that every follower
// has read.
func (db *DB) purgeNotes(ctx context.Context) (more bool, err error) {
	var some int
	if err := db.oftenOne(ctx, notesRead, nil, &some); errors.Is(err, sql.ErrNoRows) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	err = db.writer.do(ctx, workFunc(func(tx *writeTx) error {
		n, err := tx.exec(purgeNotes, int64(sweepPage))
		more = n == sweepPage
		return err
	}))
	return more, err
}

func (db *DB) purgeMessages(ctx context.Context, r holdfast.Retention) (int, bool, error) {
	s := &db.sweeps
	s.mu.Lock()
	defer s.mu.Unlock()
	now := db.clock.now()
	if sane, _ := db.clock.look(); !sane {
		return 0, false, nil
	}
	keep := map[holdfast.State]int64{}
	shortest := int64(never)
	for state, d := range map[holdfast.State]time.Duration{
		holdfast.Delivered: r.Delivered, holdfast.Expired: r.Expired, holdfast.Discarded: r.Discarded, holdfast.Parked: r.Parked,
	} {
		if d > 0 {
			keep[state] = db.clock.guard.Before(now, micros(d))
			shortest = min(shortest, micros(d))
		}
	}
	if len(keep) == 0 {
		return 0, false, nil
	}
	// A row that was created within the shortest retention cannot be past its own.
	page, read, err := db.purgePage(ctx, now, db.clock.guard.Before(now, shortest), keep, r.Held)
	if err != nil {
		return 0, false, err
	}
	since := int64(0)
	if r.Tracking > 0 {
		since = db.clock.guard.Before(now, micros(r.Tracking))
	}
	done := 0
	for len(page) > 0 {
		n := min(len(page), sweepWrite)
		k := &purge{list: page[:n], track: r.Track, since: since}
		if err := db.writer.do(ctx, k); err != nil {
			return done, false, err
		}
		done += k.done
		page = page[n:]
	}
	if read < sweepPage {
		s.purged = 0
		return done, false, nil
	}
	return done, true, nil
}

type purgeRow struct {
	seq               int64
	state             holdfast.State
	destination, okey string
}

func (db *DB) purgePage(ctx context.Context, now, createdBefore int64, keep map[holdfast.State]int64, held map[string]time.Duration) (page []purgeRow, read int, err error) {
	s := &db.sweeps
	rows, err := db.query(ctx, purgeable, s.purged, sweepPage)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r purgeRow
		var created int64
		var settled sql.NullInt64
		var okey sql.NullString
		if err := rows.Scan(&r.seq, &r.state, &created, &settled, &r.destination, &okey); err != nil {
			return nil, 0, err
		}
		r.okey = okey.String
		if created > createdBefore {
			return page, 0, nil // all rows that follow are younger
		}
		read++
		s.purged = r.seq
		before, ends := keep[r.state]
		if least, ok := held[r.destination]; ok && r.state == holdfast.Delivered {
			before = min(before, db.clock.guard.Before(now, micros(least)))
		}
		if ends && settled.Valid && settled.Int64 < before {
			page = append(page, r)
		}
	}
	return page, read, rows.Err()
}

// purge deletes some rows.
type purge struct {
	list []purgeRow
	read int64 // every follower has read the journal up to here
	done int

	track map[string]holdfast.Category // destinations whose messages leave a record
	since int64                        // if they ended then or later
}

func (k *purge) size() (int, int) { return 4 * len(k.list), 0 }

func (k *purge) apply(tx *writeTx) (err error) {
	k.done = 0
	if k.read, err = readByAll(tx.conn); err != nil {
		return err
	}
	for i := range k.list {
		gone, err := k.one(tx, &k.list[i])
		if err != nil {
			return err
		}
		if gone {
			k.done++
		}
	}
	return nil
}

func (k *purge) one(tx *writeTx, r *purgeRow) (bool, error) {
	l, err := tx.lane(r.destination)
	if err != nil {
		return false, err
	}
	if l.notifies() {
		if _, err := tx.exec(archiveNotification, r.seq, int64(r.state), k.read); err != nil {
			return false, err
		}
	}
	category, tracked := k.track[r.destination]
	record := rows.Operation{Seq: r.seq, Category: string(category), Destination: r.destination, State: int64(r.state)}
	var route, settled int64
	gone, err := tx.conn.one(purgeMessage, func(v []driver.Value) error {
		settled = asInt(v[3])
		if tracked = tracked && asInt(v[3]) >= k.since; tracked {
			route = asInt(v[1])
			readOperation(&record, v)
		}
		return nil
	}, r.seq, int64(r.state), k.read)
	if err != nil || !gone { // the row was requeued meanwhile, or a follower has not read of it yet
		return false, err
	}
	var bundle driver.Value
	if _, err := tx.conn.one(purgeBody, func(v []driver.Value) error {
		if bundle = v[0]; tracked {
			record.SetOrigin(asText(v[1]))
			record.Retry = asText(v[2])
		}
		return nil
	}, r.seq); err != nil {
		return false, err
	}
	if tracked {
		if err := tx.record(&record, route); err != nil {
			return false, err
		}
	}
	// A state beside a payload has SQLite write the payload anew. So the usual one is left out:
	// a bundle without a state, whose first message is gone, was delivered.
	if bundle != nil && r.state != holdfast.Delivered {
		if _, err := tx.exec(endBundle, bundle, r.seq, int64(r.state)); err != nil {
			return false, err
		}
	}
	if bundle != nil {
		if _, err := tx.exec(endDelivery, r.seq, int64(r.state), settled); err != nil {
			return false, err
		}
	}
	if _, err := tx.exec(purgeEvents, r.seq); err != nil {
		return false, err
	}
	tx.moves = append(tx.moves, change{l, r.state, none})
	return true, tx.placeKey(l, r.okey) // in strict order, the key may have waited for this message
}
