package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/cursor"
	"github.com/holdfast-mq/holdfast/internal/search"
	"github.com/holdfast-mq/holdfast/notify"
)

// Notification implements notify.Store. It reads the parts in separate snapshots, so later parts
// may be a moment newer.
func (db *DB) Notification(ctx context.Context, site string, id holdfast.ID) ([]notify.Record, error) {
	id, err := holdfast.ParseID(string(id))
	if err != nil {
		return nil, fmt.Errorf("get notification: %w: %w", holdfast.ErrInvalid, err)
	}
	list, err := db.copies(ctx, site, id)
	if err == nil && len(list) == 0 {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get notification %s: %w", id, err)
	}
	return list, nil
}

// NotificationSites implements notify.Store.
func (db *DB) NotificationSites(ctx context.Context, id holdfast.ID) (list []string, err error) {
	id, err = holdfast.ParseID(string(id))
	if err != nil {
		return nil, fmt.Errorf("look for notification: %w: %w", holdfast.ErrInvalid, err)
	}
	if err := db.read(ctx, notificationSites, []any{idBytes(id)}, func(rows pgx.Rows) error {
		var site string
		err := rows.Scan(&site)
		list = append(list, site)
		return err
	}); err != nil {
		return nil, fmt.Errorf("look for notification %s: %w", id, err)
	}
	return list, nil
}

func (db *DB) copies(ctx context.Context, site string, id holdfast.ID) (list []notify.Record, err error) {
	name := []any{idBytes(id), cleanText(site)}
	var kept []bool // whether the message is there
	if err := db.read(ctx, getNotification, name, func(rows pgx.Rows) error {
		c, err := db.scanCopy(rows)
		list, kept = append(list, c.r), append(kept, c.kept)
		return err
	}); err != nil || len(list) == 0 {
		return nil, err
	}
	var payload []byte
	if err := db.read(ctx, getNotificationBody, name, func(rows pgx.Rows) error { return rows.Scan(&payload) }); err != nil {
		return nil, err
	}
	body, data := notify.Text(payload)
	for i := range list {
		r := &list[i]
		r.Notification.Body, r.Notification.Data = body, data
		if r.Targets, err = db.targets(ctx, targetsOfSeq, r.Seq); err != nil {
			return nil, err
		}
		if !kept[i] {
			continue
		}
		if r.History, err = db.historyOf(ctx, r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// historyOf reads the history of a copy's message.
func (db *DB) historyOf(ctx context.Context, r *notify.Record) ([]holdfast.Entry, error) {
	m := holdfast.Record{
		Message: holdfast.Message{ID: r.Message, Destination: notify.LanePrefix + r.Channel}, Seq: r.Seq,
		Created: r.Created, Settled: r.Ended, Cycle: r.Cycle, Tries: r.Tries,
	}
	if r.Status == notify.Delivered {
		m.State = holdfast.Delivered
	}
	return db.history(ctx, &m)
}

// walked is a row of walkColumns.
type walked struct {
	r       notify.Record
	created int64
	state   int16
	kept    bool // with notificationColumns: the message is there
	now     int64
}

func (w *walked) dest() []any {
	n := &w.r.Notification
	return []any{&w.r.Seq, &w.created, &w.r.Channel, &n.List, &n.Type, &n.Origin.Site, &n.Origin.Script, &n.Subject, &w.state, &w.r.Tries}
}

func (w *walked) finish(c *clock, q *notify.Query) *notify.Record {
	w.r.Created = c.wall(w.created)
	w.r.Status = notify.StatusOf(holdfast.State(w.state), w.r.Tries)
	w.r.Stuck = q.IsStuck(&w.r, c.wall(w.now))
	return &w.r
}

// scanCopy reads a row of notificationColumns.
func (db *DB) scanCopy(rows pgx.Rows) (w walked, err error) {
	var id, message []byte
	var enqueued, settled, tried, due int64
	r := &w.r
	o := &r.Notification.Origin
	if err := rows.Scan(append(w.dest(), &id, &message, &o.Instance, &o.Execution, &o.ParentExecution, &enqueued,
		&w.kept, &settled, &r.Failures, &r.Cycle, &r.Reason, &r.LastError, &tried, &due, &r.Discarding, &w.now)...); err != nil {
		return w, err
	}
	w.finish(db.clock, &notify.Query{})
	r.Notification.ID, r.Message = idFrom(id), idFrom(message)
	o.Enqueued = instant(enqueued) // by the clock of its site
	r.Ended, r.LastAttempt, r.NextAttempt = db.clock.wall(settled), db.clock.wall(tried), db.clock.wall(due)
	if r.LastAttempt.IsZero() && r.Status == notify.Delivered {
		r.LastAttempt = r.Ended
	}
	return w, nil
}

// Notifications implements notify.Store. Each page reads a bounded number of rows, whatever the
// filter. So a page may be short or empty, and still have a next one.
func (db *DB) Notifications(ctx context.Context, q notify.Query) (notify.Page, error) {
	p, err := db.notifications(ctx, &q)
	if err != nil {
		return notify.Page{}, fmt.Errorf("list notifications: %w", err)
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
	if !q.To.IsZero() && q.After == "" {
		if before, err = search.SeqAt(ctx, q.To.Add(search.Late), func(ctx context.Context, seq int64) (int64, time.Time, error) {
			return db.from(ctx, notificationFrom, seq)
		}); err != nil {
			return p, err
		}
	}
	found, next, err := db.walkNotes(ctx, q, before)
	if err == nil && next != 0 && len(found) < pageOf(q) {
		_, p.LookedUntil, err = db.from(ctx, notificationFrom, next)
	}
	if p.Next = cursor.Format(next); err != nil || len(found) == 0 {
		return p, err
	}
	return p, db.read(ctx, readNotifications, []any{found}, func(rows pgx.Rows) error {
		w, err := db.scanCopy(rows)
		w.r.Stuck = q.IsStuck(&w.r, db.clock.wall(w.now))
		p.Records = append(p.Records, w.r)
		return err
	})
}

// noteWalk walks back through the tables, for a bounded number of rows.
type noteWalk struct {
	clock  *clock
	q      *notify.Query
	limit  int
	shows  func(r *notify.Record) bool
	found  []int64
	last   int64 // the last row that was read
	past   bool  // all further rows are too old
	looked int
}

// pageOf returns how many rows a page has.
func pageOf(q *notify.Query) int { return min(max(cmp.Or(q.Limit, 50), 1), 500) }

// walkNotes returns the rows that it found and where the next page begins. Most pages are full
// after a few rows, so it reads few at first, then more.
func (db *DB) walkNotes(ctx context.Context, q *notify.Query, before int64) (found []int64, next int64, err error) {
	w := noteWalk{clock: db.clock, q: q, limit: pageOf(q), shows: q.Filter(), last: before}
	sql := walkNotifications
	if q.Waits() {
		sql = walkWaiting
	}
	for size := 2 * w.limit; ; size *= 8 {
		size = min(size, search.Rows-w.looked)
		read := 0
		if err := db.read(ctx, sql, []any{w.last, size}, func(rows pgx.Rows) error {
			read++
			return w.row(rows)
		}); err != nil {
			return nil, 0, err
		}
		w.looked += read
		switch {
		case w.past || read < size && len(w.found) < w.limit:
			return w.found, 0, nil
		case len(w.found) == w.limit || w.looked >= search.Rows:
			return w.found, w.last, nil
		}
	}
}

func (w *noteWalk) row(rows pgx.Rows) error {
	if w.past || len(w.found) == w.limit {
		return nil
	}
	var row walked
	var seq int64
	if err := rows.Scan(append(row.dest(), &seq, &row.now)...); err != nil {
		return err
	}
	w.last = seq
	if row.r.Seq == 0 {
		return nil // a message without a notification
	}
	r := row.finish(w.clock, w.q)
	w.past = !w.q.From.IsZero() && r.Created.Before(w.q.From.Add(-search.Late))
	if !w.past && w.shows(r) {
		w.found = append(w.found, seq)
	}
	return nil
}
