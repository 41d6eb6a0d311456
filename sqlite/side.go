package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

// Side returns the store's seam for package nodestore.
func (db *DB) Side() side.Store { return sideStore{db} }

type sideStore struct{ db *DB }

// portable turns a statement of package side into one for SQLite. Nobody else can write during a
// transaction that writes, so rows need no locks.
func portable(sql string, args []any, now func() int64) (string, []any) {
	sql = strings.ReplaceAll(strings.TrimSuffix(sql, " FOR UPDATE"), "$", "?")
	if strings.Contains(sql, "hf_now()") {
		args = append(slices.Clip(args), now())
		sql = strings.ReplaceAll(sql, "hf_now()", "?"+strconv.Itoa(len(args)))
	}
	return sql, args
}

// Change implements side.Store.
func (s sideStore) Change(ctx context.Context, c side.Cost, f func(tx side.Tx) error) error {
	if c.Complete {
		if err := s.db.ready(); err != nil {
			return err
		}
	}
	k := &sideChange{cost: c, change: f}
	if err := s.db.writer.do(ctx, k); err != nil {
		return err
	}
	return k.fault
}

// sideChange is the work of one Change call.
type sideChange struct {
	cost   side.Cost
	change func(tx side.Tx) error
	fault  error
}

func (k *sideChange) size() (int, int) { return 2 + k.cost.Rows/4, k.cost.Bytes }

func (k *sideChange) apply(tx *writeTx) error {
	t := &sideTx{tx: tx}
	err := k.change(t)
	if k.fault = nil; t.used {
		return err
	}
	k.fault = err // the error concerns only this caller
	return nil
}

// sideTx implements side.Tx.
type sideTx struct {
	tx   *writeTx
	used bool // something was written, or a statement has failed
}

func (t *sideTx) Put(list ...rows.Row) error {
	t.used = true
	return t.tx.put(list...)
}

func (t *sideTx) Add(list ...rows.Row) (added int64, err error) {
	added, err = t.tx.add(list...)
	t.used = t.used || added > 0 || err != nil
	return added, err
}

func (t *sideTx) Exec(sql string, args ...any) (changed int64, err error) {
	err = t.Read(sql+" RETURNING 1", args, func(side.Scan) error {
		changed++
		return nil
	})
	t.used = t.used || changed > 0
	return changed, err
}

func (t *sideTx) Read(sql string, args []any, row func(scan side.Scan) error) error {
	sql, args = portable(sql, args, t.tx.w.db.clock.now)
	values := make([]driver.Value, len(args))
	for i, a := range args {
		values[i] = a
	}
	err := t.tx.conn.rows(sql, func(v []driver.Value) error {
		return row(func(dest ...any) error { return scanValues(v, dest) })
	}, values...)
	t.used = t.used || err != nil
	return err
}

func (t *sideTx) Note(e *holdfast.Entry) error {
	t.used = true
	return t.tx.note(0, e)
}

// scanValues is a side.Scan of the writer's rows.
func scanValues(v []driver.Value, dest []any) error {
	if len(v) != len(dest) {
		return fmt.Errorf("%d columns for %d values", len(v), len(dest))
	}
	for i := range dest {
		switch d := dest[i].(type) {
		case *string:
			*d = asText(v[i])
		case *int64:
			*d = asInt(v[i])
		case *bool:
			*d = asInt(v[i]) == 1
		case *[]byte:
			*d = asBytes(v[i])
		default:
			return fmt.Errorf("no column becomes a %T", d)
		}
	}
	return nil
}

// Read implements side.Store.
func (s sideStore) Read(ctx context.Context, sql string, args []any, row func(scan side.Scan) error) (err error) {
	sql, args = portable(sql, args, s.db.clock.now)
	found, err := s.db.kept(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		if err := row(found.Scan); err != nil {
			return err
		}
	}
	return s.db.noted(found.Err())
}

// Together implements side.Store.
func (s sideStore) Together(ctx context.Context, f func(r side.Reader) error) (oneMoment bool, err error) {
	tx, err := s.db.snapshot(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, tx.end()) }()
	return true, s.db.noted(f(sideSnapshot{s.db, tx}))
}

// sideSnapshot reads what belongs together.
type sideSnapshot struct {
	db *DB
	tx *snapshot
}

// Read implements side.Reader.
func (s sideSnapshot) Read(ctx context.Context, text string, args []any, row func(scan side.Scan) error) error {
	text, args = portable(text, args, s.db.clock.now)
	return s.tx.eachOf(ctx, text, func(found *sql.Rows) error { return row(found.Scan) }, args...)
}

// EachRow implements side.Reader.
func (s sideSnapshot) EachRow(ctx context.Context, w rows.Range, yield func(r rows.Row) error) error {
	return eachRowOf(ctx, s.tx, w, yield)
}

// EachRow implements side.Store.
func (s sideStore) EachRow(ctx context.Context, w rows.Range, yield func(r rows.Row) error) error {
	if err := s.db.readable(ctx); err != nil {
		return err
	}
	return s.db.noted(eachRowOf(ctx, s.db.readers, w, yield))
}

// Clock implements side.Store.
func (s sideStore) Clock(context.Context) (side.Clock, error) { return s.db.clock, nil }

// Judge implements side.Clock. Time that was seen to pass ends access, whatever the clock shows: a
// wrong clock gives nobody longer access.
func (c *clock) Judge(until rows.Instant, lasts time.Duration) belief.Verdict {
	c.look()
	return c.guard.Judge(c.now(), int64(until), micros(lasts))
}

// End implements side.Clock.
func (c *clock) End(until rows.Instant, lasts time.Duration) time.Time {
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

// Incarnation implements side.Store. A Restore starts a new incarnation.
func (s sideStore) Incarnation(ctx context.Context) (id string, err error) {
	if err = s.db.readable(ctx); err == nil {
		err = s.db.noted(s.db.readers.QueryRowContext(ctx, queries[storeIncarnation]).Scan(&id))
	}
	return id, err
}
