package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/rows"
)

// retriesAtOnce is how many messages MoveRetries reads in one transaction.
const retriesAtOnce = 1000

// MoveRetries implements fanout.Mover.
func (db *DB) MoveRetries(ctx context.Context, destination string, plan func(tries int, wait time.Duration) time.Duration) (moved int, err error) {
	now, err := db.askClock(ctx)
	from := retryRow{due: now, seq: math.MaxInt64}
	for more := true; more && err == nil; {
		last, read, changed := from, 0, 0
		err = db.own(ctx, func(tx *ownTx) (err error) {
			last, read, changed, err = tx.moveRetries(destination, from, plan)
			return err
		})
		moved, from, more = moved+changed, last, read == retriesAtOnce
	}
	if err != nil {
		return moved, fmt.Errorf("move the retries of %s: %w", destination, err)
	}
	return moved, nil
}

// retryRow is a message that waits for a retry.
type retryRow struct{ seq, due, tries, tried int64 }

// retryMove gives such a message another due time.
type retryMove struct{ seq, was, due int64 }

// moveRetries moves the retries of one page, and returns its last row.
func (tx *ownTx) moveRetries(destination string, from retryRow, plan func(tries int, wait time.Duration) time.Duration) (last retryRow, read, moved int, err error) {
	last = from
	var moves []retryMove
	if err = tx.query(retriesPage, []any{destination, from.due, from.seq, retriesAtOnce}, func(found pgx.Rows) error {
		if err := found.Scan(&last.seq, &last.due, &last.tries, &last.tried); err != nil {
			return err
		}
		read++
		waits := rows.Duration(last.due - last.tried)
		if wait := plan(int(last.tries), waits); last.tried != 0 && wait != waits {
			moves = append(moves, retryMove{last.seq, last.due, last.tried + micros(wait)})
		}
		return nil
	}); err != nil || len(moves) == 0 {
		return last, read, 0, err
	}
	slices.SortFunc(moves, func(a, b retryMove) int { return cmp.Compare(a.seq, b.seq) })
	seqs, was, due := make([]int64, len(moves)), make([]int64, len(moves)), make([]int64, len(moves))
	for i, m := range moves {
		seqs[i], was[i], due[i] = m.seq, m.was, m.due
	}
	err = tx.query(moveRetries, []any{seqs, was, due}, func(found pgx.Rows) error {
		var lane int32
		if err := found.Scan(&lane); err != nil {
			return err
		}
		if moved == 0 {
			tx.wakes(lane)
			tx.after = append(tx.after, func() { tx.db.claim.rewindTried(lane) })
		}
		moved++
		return nil
	})
	return last, read, moved, err
}
