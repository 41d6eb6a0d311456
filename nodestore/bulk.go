package nodestore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/bulk"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

const bulkColumns = ` id, list, verb, request, actor, rate, state, total, next, done, refused, created, coalesce(ended, 0) FROM hf_bulk `

const (
	oneBulk   = `SELECT` + bulkColumns + `WHERE id = $1`
	bulksDown = `SELECT` + bulkColumns + `WHERE id < $1 ORDER BY id DESC LIMIT $2`
	freeBulk  = `SELECT` + bulkColumns + `WHERE state = 'running' AND id > $2 AND (holder IS NULL OR holder = $1 OR held_until <= hf_now()) ORDER BY id LIMIT 1`
	bulkRows  = `SELECT seq, item, coalesce(outcome, 'open'), coalesce(detail, '') FROM hf_bulk_row WHERE bulk = $1 AND seq > $2 ORDER BY seq LIMIT $3`

	growBulk = `UPDATE hf_bulk SET total = total + $3 WHERE id = $1 AND state = 'gathering' AND total = $2`
	moveBulk = `UPDATE hf_bulk SET state = $3, holder = NULL, held_until = NULL WHERE id = $1 AND state = $2`
	endBulk  = `UPDATE hf_bulk SET state = $3, ended = hf_now(), holder = NULL, held_until = NULL WHERE id = $1 AND state = $2`
	holdBulk = `UPDATE hf_bulk SET holder = $2, held_until = hf_now() + $3
		WHERE id = $1 AND state = 'running' AND (holder IS NULL OR holder = $2 OR held_until <= hf_now())`
	stepBulk = `UPDATE hf_bulk SET next = $3, done = done + $4, refused = refused + $5, held_until = hf_now() + $6
		WHERE id = $1 AND next = $2 AND (holder IS NULL OR holder = $7)`
	finishBulk = `UPDATE hf_bulk SET state = 'done', ended = hf_now(), holder = NULL, held_until = NULL WHERE id = $1 AND next > total AND state = 'running'`
	endRow     = `UPDATE hf_bulk_row SET outcome = $3, detail = $4 WHERE bulk = $1 AND seq = $2`

	oldBulk  = `SELECT id, coalesce(ended, created), CASE WHEN state IN ('running', 'paused') THEN 1 ELSE 0 END FROM hf_bulk WHERE id > $1 ORDER BY id LIMIT 100`
	dropRows = `DELETE FROM hf_bulk_row WHERE bulk = $1 AND seq IN (SELECT seq FROM hf_bulk_row WHERE bulk = $1 ORDER BY seq LIMIT 1000)`
	dropBulk = `DELETE FROM hf_bulk WHERE id = $1`
)

// Bulks keeps bulk actions.
type Bulks struct{ db side.Store }

var _ bulk.Store = (*Bulks)(nil)

func (s *Bulks) scan(scan side.Scan) (a bulk.Action, err error) {
	var state string
	var created, ended int64
	err = scan(&a.ID, &a.List, &a.Verb, &a.Request, &a.Actor, &a.Rate, &state, &a.Total, &a.Next, &a.Done, &a.Refused, &created, &ended)
	a.State, a.Created = bulk.State(state), s.db.Time(rows.Instant(created))
	if ended != 0 {
		a.Ended = s.db.Time(rows.Instant(ended))
	}
	return a, err
}

// AddBulk implements bulk.Store.
func (s *Bulks) AddBulk(ctx context.Context, a *bulk.Action) error {
	err := s.db.Change(ctx, side.Cost{}, func(tx side.Tx) error {
		added, err := tx.Add(&rows.Bulk{
			ID: a.ID, List: a.List, Verb: a.Verb, Request: a.Request, Actor: a.Actor, Rate: a.Rate,
			State: string(bulk.Gathering), Next: 1, Created: rows.Now, Ended: rows.None, HeldUntil: rows.None,
		})
		if err == nil && added == 0 {
			err = holdfast.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("add bulk action %s: %w", a.ID, err)
	}
	return nil
}

// GatherBulk implements bulk.Store.
func (s *Bulks) GatherBulk(ctx context.Context, id string, after int64, items []string) error {
	list := make([]rows.Row, len(items))
	for i, item := range items {
		list[i] = &rows.BulkRow{Bulk: id, Seq: after + int64(i) + 1, Item: item}
	}
	err := s.db.Change(ctx, side.Cost{Rows: len(list), Bytes: 100 * len(list)}, func(tx side.Tx) error {
		changed, err := tx.Exec(growBulk, id, after, int64(len(items)))
		if err == nil && changed == 0 {
			err = holdfast.ErrState
		}
		if err != nil || len(list) == 0 {
			return err
		}
		return tx.Put(list...)
	})
	if err != nil {
		return fmt.Errorf("gather rows of bulk action %s: %w", id, err)
	}
	return nil
}

// MoveBulk implements bulk.Store.
func (s *Bulks) MoveBulk(ctx context.Context, id string, to bulk.State, from ...bulk.State) error {
	sql := moveBulk
	if to == bulk.Cancelled {
		sql = endBulk
	}
	err := s.db.Change(ctx, side.Cost{LastRoom: true}, func(tx side.Tx) error {
		for _, f := range from {
			changed, err := tx.Exec(sql, id, string(f), string(to))
			if err != nil || changed > 0 {
				return err
			}
		}
		there := false
		err := tx.Read(oneBulk, []any{id}, func(side.Scan) error { there = true; return nil })
		switch {
		case err != nil:
			return err
		case there:
			return holdfast.ErrState
		}
		return holdfast.ErrNotFound
	})
	if err != nil {
		return fmt.Errorf("move bulk action %s to %s: %w", id, to, err)
	}
	return nil
}

// Bulk implements bulk.Store.
func (s *Bulks) Bulk(ctx context.Context, id string) (a bulk.Action, err error) {
	err = s.db.Read(ctx, oneBulk, []any{id}, func(scan side.Scan) (err error) {
		a, err = s.scan(scan)
		return err
	})
	if err == nil && a.ID == "" {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return a, fmt.Errorf("read bulk action %.64q: %w", id, err)
	}
	return a, nil
}

// Bulks implements bulk.Store.
func (s *Bulks) Bulks(ctx context.Context, before string, limit int) (list []bulk.Action, err error) {
	if before == "" {
		before = "g" // after each UUID
	}
	err = s.db.Read(ctx, bulksDown, []any{before, int64(limit)}, func(scan side.Scan) error {
		a, err := s.scan(scan)
		list = append(list, a)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list bulk actions: %w", err)
	}
	return list, nil
}

// BulkRows implements bulk.Store.
func (s *Bulks) BulkRows(ctx context.Context, id string, after int64, limit int) (list []bulk.Row, err error) {
	err = s.db.Read(ctx, bulkRows, []any{id, after, int64(limit)}, func(scan side.Scan) error {
		var r bulk.Row
		var outcome string
		err := scan(&r.Seq, &r.Item, &outcome, &r.Detail)
		r.Outcome = bulk.Outcome(outcome)
		list = append(list, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list rows of bulk action %.64q: %w", id, err)
	}
	return list, nil
}

// ClaimBulk implements bulk.Store.
func (s *Bulks) ClaimBulk(ctx context.Context, holder string, lease time.Duration, after string) (a bulk.Action, some bool, err error) {
	find := func(scan side.Scan) (err error) {
		a, err = s.scan(scan)
		return err
	}
	if err = s.db.Read(ctx, freeBulk, []any{holder, after}, find); err == nil && a.ID != "" {
		// It is read again with the claim: somebody else may have gone on with it meanwhile.
		err = s.db.Change(ctx, side.Cost{}, func(tx side.Tx) error {
			changed, err := tx.Exec(holdBulk, a.ID, holder, rows.Micros(lease))
			if some = changed > 0; err != nil || !some {
				return err
			}
			return tx.Read(oneBulk, []any{a.ID}, find)
		})
	}
	if err != nil {
		return bulk.Action{}, false, fmt.Errorf("claim a bulk action: %w", err)
	}
	return a, some, nil
}

// RecordBulk implements bulk.Store.
func (s *Bulks) RecordBulk(ctx context.Context, a *bulk.Action, holder string, lease time.Duration, list []bulk.Row) error {
	var done int64
	for _, r := range list {
		if r.Outcome == bulk.DoneRow {
			done++
		}
	}
	n, next := int64(len(list)), a.Total+1 // a row that a damaged file has lost is left out
	if n > 0 {
		next = list[n-1].Seq + 1
	}
	err := s.db.Change(ctx, side.Cost{Rows: len(list)}, func(tx side.Tx) error {
		changed, err := tx.Exec(stepBulk, a.ID, a.Next, next, done, n-done, rows.Micros(lease), holder)
		if err == nil && changed == 0 {
			err = holdfast.ErrState
		}
		for i := 0; i < len(list) && err == nil; i++ {
			_, err = tx.Exec(endRow, a.ID, list[i].Seq, string(list[i].Outcome), list[i].Detail)
		}
		if err == nil {
			_, err = tx.Exec(finishBulk, a.ID)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("record rows of bulk action %s: %w", a.ID, err)
	}
	return nil
}

// PurgeBulks implements bulk.Store. Actions are few; their rows are removed piece by piece, the action last.
func (s *Bulks) PurgeBulks(ctx context.Context, keep time.Duration) (purged int64, err error) {
	clock, err := s.db.Clock(ctx)
	after := ""
	for more := true; more && err == nil; {
		var old []string
		more = false
		err = s.db.Read(ctx, oldBulk, []any{after}, func(scan side.Scan) error {
			var at, lives int64
			if err := scan(&after, &at, &lives); err != nil {
				return err
			}
			more = true
			if lives == 0 && clock.Judge(rows.Instant(at+rows.Micros(keep)), keep) == belief.Over {
				old = append(old, after)
			}
			return nil
		})
		for id := range slices.Values(old) {
			if err == nil {
				err = s.drop(ctx, id)
				purged++
			}
		}
	}
	if err != nil {
		return purged, fmt.Errorf("purge bulk actions: %w", err)
	}
	return purged, nil
}

func (s *Bulks) drop(ctx context.Context, id string) error {
	for {
		var n int64
		err := s.db.Change(ctx, side.Cost{Rows: 1000}, func(tx side.Tx) (err error) {
			if n, err = tx.Exec(dropRows, id); err == nil && n == 0 {
				_, err = tx.Exec(dropBulk, id)
			}
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}
