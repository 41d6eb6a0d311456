package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/cursor"
	"github.com/holdfast-mq/holdfast/internal/search"
	"github.com/holdfast-mq/holdfast/notify"
)

// Notification implements notify.Store.
func (db *DB) Notification(ctx context.Context, site string, id holdfast.ID) ([]notify.Record, error) {
	id, err := holdfast.ParseID(string(id))
	if err != nil {
		return nil, fmt.Errorf("get notification: %w: %w", holdfast.ErrInvalid, err)
	}
	// One snapshot for all rows that belong together.
	tx, err := db.snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("get notification %s: %w", id, err)
	}
	defer func() { _ = tx.end() }()
	list, err := db.copies(ctx, tx, site, id)
	if err == nil && len(list) == 0 {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get notification %s: %w", id, db.noted(err))
	}
	return list, nil
}

// NotificationSites implements notify.Store.
func (db *DB) NotificationSites(ctx context.Context, id holdfast.ID) ([]string, error) {
	id, err := holdfast.ParseID(string(id))
	if err != nil {
		return nil, fmt.Errorf("look for notification: %w: %w", holdfast.ErrInvalid, err)
	}
	tx, err := db.snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for notification %s: %w", id, err)
	}
	defer func() { _ = tx.end() }()
	var list []string
	if err := tx.each(ctx, notificationSites, func(rows *sql.Rows) error {
		var site string
		err := rows.Scan(&site)
		list = append(list, site)
		return err
	}, idValue(id)); err != nil {
		return nil, fmt.Errorf("look for notification %s: %w", id, db.noted(err))
	}
	return list, nil
}

func (db *DB) copies(ctx context.Context, tx *snapshot, site string, id holdfast.ID) (list []notify.Record, err error) {
	var bundle int64
	var payload []byte
	err = tx.QueryRowContext(ctx, queries[getNotificationText], idValue(id), site).Scan(&bundle, &payload)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var kept []bool // whether the message still exists
	if err := tx.each(ctx, getNotification, func(rows *sql.Rows) error {
		r, has, err := db.scanCopy(rows)
		list, kept = append(list, r), append(kept, has)
		return err
	}, bundle); err != nil {
		return nil, err
	}
	body, data := notify.Text(payload)
	for i := range list {
		r := &list[i]
		r.Notification.Body, r.Notification.Data = body, data
		rows, err := tx.QueryContext(ctx, queries[targetsOfSeq], r.Seq)
		if err != nil {
			return nil, err
		}
		if r.Targets, err = db.scanTargets(rows); err != nil {
			return nil, err
		}
		if !kept[i] {
			continue
		}
		if r.History, err = db.historyOf(ctx, tx, r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// historyOf reads the history of a copy's message.
func (db *DB) historyOf(ctx context.Context, tx *snapshot, r *notify.Record) ([]holdfast.Entry, error) {
	m := holdfast.Record{
		Message: holdfast.Message{ID: r.Message, Destination: notify.LanePrefix + r.Channel}, Seq: r.Seq,
		Created: r.Created, Settled: r.Ended, Cycle: r.Cycle, Tries: r.Tries,
	}
	if r.Status == notify.Delivered {
		m.State = holdfast.Delivered
	}
	return db.history(ctx, tx, &m)
}

// walked is a row of walkColumns.
type walked struct {
	r              notify.Record
	created, tries int64
	state          holdfast.State
}

func (w *walked) dest() []any {
	n := &w.r.Notification
	return []any{&w.r.Seq, &w.created, &w.r.Channel, &n.List, &n.Type, &n.Origin.Site, &n.Origin.Script, &n.Subject, &w.state, &w.tries}
}

func (w *walked) finish(db *DB) *notify.Record {
	w.r.Created, w.r.Tries = db.clock.wall(w.created), int(w.tries)
	w.r.Status = notify.StatusOf(w.state, w.r.Tries)
	return &w.r
}

// scanCopy reads a row of notificationColumns. kept reports whether its message still exists.
func (db *DB) scanCopy(rows *sql.Rows) (r notify.Record, kept bool, err error) {
	w := walked{}
	var id, message any
	var instance, execution, parent string
	var enqueued, settled, tried, due sql.NullInt64
	var reason, lastError sql.NullString
	var failures, cycle int
	var discarding sql.NullBool
	if err := rows.Scan(append(w.dest(), &id, &message, &instance, &execution, &parent, &enqueued,
		&kept, &settled, &failures, &cycle, &reason, &lastError, &tried, &due, &discarding)...); err != nil {
		return r, false, err
	}
	r = *w.finish(db)
	n := &r.Notification
	n.ID, r.Message = idFrom(id), idFrom(message)
	if message == nil {
		r.Message = n.Key()
	}
	n.Origin.Instance, n.Origin.Execution, n.Origin.ParentExecution = instance, execution, parent
	if enqueued.Valid {
		n.Origin.Enqueued = time.UnixMicro(enqueued.Int64).UTC()
	}
	r.Failures, r.Cycle, r.Reason, r.LastError = failures, cycle, holdfast.Reason(reason.String), lastError.String
	r.Discarding = discarding.Bool
	r.Ended, r.LastAttempt, r.NextAttempt = db.wall(settled), db.wall(tried), db.wall(due)
	if r.LastAttempt.IsZero() && r.Status == notify.Delivered {
		r.LastAttempt = r.Ended
	}
	if due.Valid && db.lanes.shown(r.Seq, w.state) == holdfast.Claimed { // an attempt is running now
		r.NextAttempt = time.Time{}
	}
	return r, kept, nil
}

// Notifications implements notify.Store. Each page reads a bounded number of rows, whatever the
// filter: a page may be short or empty and still have a next page.
func (db *DB) Notifications(ctx context.Context, q notify.Query) (notify.Page, error) {
	p, err := db.notifications(ctx, &q)
	if err != nil {
		return notify.Page{}, fmt.Errorf("list notifications: %w", db.noted(err))
	}
	return p, nil
}

func (db *DB) notifications(ctx context.Context, q *notify.Query) (p notify.Page, err error) {
	before := int64(never)
	if q.After != "" {
		if before, err = cursor.Parse(q.After); err != nil {
			return p, err
		}
	}
	tx, err := db.snapshot(ctx)
	if err != nil {
		return p, err
	}
	defer func() { _ = tx.end() }()
	if !q.To.IsZero() && q.After == "" {
		if before, err = search.SeqAt(ctx, q.To, func(ctx context.Context, seq int64) (int64, time.Time, error) {
			return tx.from(ctx, db, notificationFrom, seq)
		}); err != nil {
			return p, err
		}
	}
	found, next, err := db.walk(ctx, tx, q, before)
	if err == nil && next != 0 && len(found) < pageOf(q) {
		_, p.LookedUntil, err = tx.from(ctx, db, notificationFrom, next)
	}
	if p.Next = cursor.Format(next); err != nil || len(found) == 0 {
		return p, err
	}
	seqs, err := json.Marshal(found)
	if err != nil {
		return p, err
	}
	now := db.clock.wall(db.clock.now())
	return p, tx.each(ctx, readNotifications, func(rows *sql.Rows) error {
		r, _, err := db.scanCopy(rows)
		r.Stuck = q.IsStuck(&r, now)
		p.Records = append(p.Records, r)
		return err
	}, string(seqs))
}

// pageOf returns how many rows a page has.
func pageOf(q *notify.Query) int { return min(max(cmp.Or(q.Limit, 50), 1), 500) }

// walk goes backwards through a bounded part of the table. It returns what it found and where the
// next page begins.
func (db *DB) walk(ctx context.Context, tx *snapshot, q *notify.Query, before int64) (found []int64, next int64, err error) {
	limit, shows, from := pageOf(q), q.Filter(), walkNotifications
	if q.Waits() {
		from = walkWaiting
	}
	rows, err := tx.QueryContext(ctx, queries[from], before, search.Rows)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	now, n, last := db.clock.wall(db.clock.now()), 0, int64(0)
	for len(found) < limit && rows.Next() {
		var w walked
		if err := rows.Scan(w.dest()...); err != nil {
			return nil, 0, err
		}
		r := w.finish(db)
		if !q.From.IsZero() && r.Created.Before(q.From) {
			return found, 0, nil // all rows that follow are older too
		}
		r.Stuck = q.IsStuck(r, now)
		if n, last = n+1, r.Seq; shows(r) {
			found = append(found, last)
		}
	}
	if len(found) == limit || n == search.Rows {
		next = last
	}
	return found, next, rows.Err()
}
