package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// Target is a database into which the whole content of another store is copied. No node can start
// while it is open.
type Target struct {
	contents

	routes  map[routeKey]route
	sources map[string]int32
}

var _ storecopy.Importer = (*Target)(nil)

// OpenTarget opens a database for a move, and creates the tables if they do not exist. An error
// that wraps storecopy.ErrInUse names the nodes that use it. storecopy.ErrSame means that it is the source
// itself.
func OpenTarget(ctx context.Context, dsn string, source storecopy.Origin) (*Target, error) {
	t := &Target{}
	t.forget()
	if err := t.open(ctx, dsn, func(has tables) error {
		if has.version == 0 {
			return nil
		}
		if store, err := t.meta(ctx, metaIncarnation); err != nil || store == source.Store {
			return errors.Join(err, storecopy.ErrSame)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return t, nil
}

// forget drops the numbers of names, which a rolled back transaction may have undone.
func (t *Target) forget() { t.routes, t.sources = map[routeKey]route{}, map[string]int32{} }

// note writes the progress, in one transaction with work.
func (t *Target) note(ctx context.Context, p storecopy.Progress, work func(tx pgx.Tx) error) error {
	text, err := storecopy.Text(p)
	if err != nil {
		return err
	}
	if err := t.guarded(ctx); err != nil {
		return explain(err)
	}
	err = pgx.BeginFunc(ctx, t.conn, func(tx pgx.Tx) error {
		if err := work(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, writeMeta, metaCopy, text)
		return err
	})
	if err != nil {
		t.forget()
	}
	return explain(err)
}

// Begin implements storecopy.Importer.
func (t *Target) Begin(ctx context.Context, p storecopy.Progress, n storecopy.Totals) error {
	return t.note(ctx, p, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, importNumbers, n.LastMessage, n.LastInbox, n.LastEvent)
		return err
	})
}

// End implements storecopy.Importer.
func (t *Target) End(ctx context.Context, p storecopy.Progress) error {
	return t.note(ctx, p, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, importBundled)
		if err == nil {
			_, err = tx.Exec(ctx, sumUpTally, 0, 0)
		}
		return err
	})
}

// Write implements storecopy.Importer.
func (t *Target) Write(ctx context.Context, page []rows.Row, p storecopy.Progress) error {
	return t.note(ctx, p, func(tx pgx.Tx) error {
		im := &importing{t: t, tx: tx, ctx: ctx, base: p.HereNow, sums: sums{lanes: map[int32]holdfast.LaneCounts{}}}
		if err := im.page(page); err != nil {
			return err
		}
		return im.count()
	})
}

// Counts implements storecopy.Importer. It reads the sums of the counters' changes.
func (t *Target) Counts(ctx context.Context) (c holdfast.Counts, err error) {
	c.Lanes = map[string]holdfast.LaneCounts{}
	x := exporting{ctx: ctx, conn: t.conn}
	err = x.each(readTally, []any{int64(-1)}, func(found pgx.Rows) error {
		var nobodys bool // no node has this number
		var lane int32
		var name string
		var l holdfast.LaneCounts
		var inbox, kept int64
		err := found.Scan(&nobodys, &lane, &name, &l.Pending, &l.Parked, &l.Expired, &inbox, &kept)
		c.Inbox, c.Kept = c.Inbox+inbox, c.Kept+kept
		if lane != 0 {
			c.Lanes[name] = l
		}
		return err
	})
	return c, explain(err)
}

// Place implements storecopy.Importer.
func (t *Target) Place(ctx context.Context) error {
	x := exporting{ctx: ctx, conn: t.conn}
	var lanes []int32
	if err := x.each(importLanes, nil, func(found pgx.Rows) error {
		var lane int32
		err := found.Scan(&lane)
		lanes = append(lanes, lane)
		return err
	}); err != nil {
		return explain(err)
	}
	for _, lane := range lanes {
		if err := t.place(ctx, lane); err != nil {
			return explain(err)
		}
	}
	_, err := t.conn.Exec(ctx, analyze) // the server skips tables that do not belong to this role
	return explain(err)
}

func (t *Target) place(ctx context.Context, lane int32) error {
	x := exporting{ctx: ctx, conn: t.conn}
	for from := ""; ; {
		var keys []string
		var lanes []int32
		if err := x.each(stoppedKeys, []any{lane, from, freePage}, func(found pgx.Rows) error {
			var key string
			err := found.Scan(&key)
			keys, lanes = append(keys, key), append(lanes, lane)
			return err
		}); err != nil || len(keys) == 0 {
			return err
		}
		if _, err := t.conn.Exec(ctx, placeKeys, lanes, keys); err != nil {
			return err
		}
		from = keys[len(keys)-1]
	}
}
