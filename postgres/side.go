package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

// Side returns the store in the form that package nodestore needs.
func (db *DB) Side() side.Store { return sideStore{db} }

type sideStore struct{ db *DB }

// Change implements side.Store. Each change has its own transaction.
func (s sideStore) Change(ctx context.Context, _ side.Cost, f func(tx side.Tx) error) error {
	if err := s.db.usable(ctx); err != nil {
		return err
	}
	return s.db.unbound(ctx, func(tx *ownTx) error { return f(sideTx{tx}) })
}

// sideTx implements side.Tx.
type sideTx struct{ tx *ownTx }

func (t sideTx) Put(list ...rows.Row) error                    { return t.tx.put(list...) }
func (t sideTx) Add(list ...rows.Row) (added int64, err error) { return t.tx.add(list...) }

func (t sideTx) Exec(sql string, args ...any) (changed int64, err error) {
	err = t.Read(sql+" RETURNING 1", args, func(side.Scan) error {
		changed++
		return nil
	})
	return changed, err
}

func (t sideTx) Read(sql string, args []any, row func(scan side.Scan) error) error {
	return t.tx.query(sql, cleanArgs(args), func(found pgx.Rows) error { return row(found.Scan) })
}

func (t sideTx) Note(e *holdfast.Entry) error {
	t.tx.note(e)
	return nil
}

// cleanArgs returns the parameters with their texts in a form that PostgreSQL can store.
func cleanArgs(args []any) []any {
	clean := make([]any, len(args))
	for i, a := range args {
		if s, ok := a.(string); ok {
			a = cleanText(s)
		}
		clean[i] = a
	}
	return clean
}

// Read implements side.Store.
func (s sideStore) Read(ctx context.Context, sql string, args []any, row func(scan side.Scan) error) error {
	return s.db.read(ctx, sql, cleanArgs(args), func(found pgx.Rows) error { return row(found.Scan) })
}

// EachRow implements side.Store.
func (s sideStore) EachRow(ctx context.Context, w rows.Range, yield func(r rows.Row) error) error {
	return s.db.eachRowOf(ctx, w, yield)
}

// Together implements side.Store. Each query sees what was committed before it.
func (s sideStore) Together(_ context.Context, f func(r side.Reader) error) (oneMoment bool, err error) {
	return false, f(s)
}

// sideClock implements side.Clock.
type sideClock struct {
	*clock

	now int64
}

// Clock implements side.Store.
func (s sideStore) Clock(ctx context.Context) (side.Clock, error) {
	now, err := s.db.askClock(ctx)
	return sideClock{s.db.clock, now}, err
}

func (c sideClock) Judge(until rows.Instant, lasts time.Duration) belief.Verdict {
	return c.guard.Judge(c.now, int64(until), micros(lasts))
}

func (c sideClock) End(until rows.Instant, lasts time.Duration) time.Time {
	return c.wall(c.guard.EndByClock(int64(until), micros(lasts)))
}

// Time implements side.Store.
func (s sideStore) Time(at rows.Instant) (t time.Time) {
	if at != rows.None {
		t = s.db.clock.wall(int64(at))
	}
	return t
}

// Full implements side.Store.
func (s sideStore) Full() bool { return s.db.Full() }

// siteHistory identifies the store and its history. A restored dump is in another database, or has
// created the tables anew. A server that took over, or went back to a point in time, is on another
// timeline, or on another branch of it. A table keeps its number (OID) until it is dropped, even through VACUUM FULL.
const siteHistory = `SELECT m.value || '-' || d.oid || '-' || 'hf_meta'::regclass::oid || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '-' || split_part(` + findBranch + `, ' ', 3)
	FROM hf_meta AS m, pg_database AS d WHERE m.key = 'incarnation' AND d.datname = current_database()`

// Incarnation implements side.Store. It changes when the tables were replaced, for example by a
// restored dump, and when the server has another history, for example after a failover.
func (s sideStore) Incarnation(ctx context.Context) (id string, err error) {
	err = s.db.read(ctx, siteHistory, nil, func(found pgx.Rows) error { return found.Scan(&id) })
	return id, err
}
