package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/holdfast-mq/holdfast"
)

// settle is the work of one Settle call.
type settle struct {
	db   *DB
	list []holdfast.Settlement
	won  []bool
}

// Settle implements holdfast.Store.
func (db *DB) Settle(ctx context.Context, list ...holdfast.Settlement) ([]bool, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if db.within(ctx) {
		return nil, fmt.Errorf("settle: %w", holdfast.ErrNested)
	}
	k := &settle{db: db, list: list, won: make([]bool, len(list))}
	if err := db.writer.do(ctx, k); err != nil {
		return nil, fmt.Errorf("settle %d messages: %w", len(list), err)
	}
	return k.won, nil
}

func (k *settle) size() (int, int) { return len(k.list), 64 * len(k.list) }

func (k *settle) apply(tx *writeTx) error {
	clear(k.won)
	ls := k.db.lanes
	for i := range k.list {
		s := &k.list[i]
		ls.mu.Lock()
		held, ok := ls.leases[s.Seq]
		ls.mu.Unlock()
		if !ok || held.token != s.Token {
			continue // somebody else's, or ended: their decision stands
		}
		won, err := tx.settleOne(s, &held)
		if err != nil {
			return err
		}
		k.won[i] = won
		tx.released = append(tx.released, released{s.Seq, true})
	}
	return nil
}

// settleOne writes one outcome. It loses when the row is no longer in the
// state that the lease took it from: an operator or a purge was faster.
func (tx *writeTx) settleOne(s *holdfast.Settlement, held *lease) (bool, error) {
	from := int64(holdfast.Pending)
	if held.durable {
		from = int64(holdfast.Claimed)
	}
	tries, failures := int64(held.tries+1), int64(held.failures)
	if s.Charged {
		failures++
	}
	if s.Outcome == holdfast.NotStarted {
		return tx.giveBack(s, held, from)
	}
	now := tx.tick()
	began := now - micros(s.Took)
	due := int64(never)
	var n int64
	var err error
	switch s.State {
	case holdfast.Delivered:
		n, err = tx.exec(settleDelivered, s.Seq, from, tries, failures, now)
	case holdfast.Pending:
		due = min(after(now, s.RetryIn), held.expires)
		n, err = tx.exec(settlePending, s.Seq, from, tries, failures, due, began)
	case holdfast.Parked:
		n, err = tx.exec(settleParked, s.Seq, from, tries, failures, now, began, nullText(string(s.Reason)))
	case holdfast.Claimed, holdfast.Expired, holdfast.Discarded:
		return false, fmt.Errorf("settle seq %d: a claim cannot become %s: %w", s.Seq, s.State, holdfast.ErrState)
	}
	if err != nil || n == 0 {
		return false, err
	}
	if s.State == holdfast.Pending {
		tx.fresh = append(tx.fresh, freshRow{lane: held.lane, due: due})
	} else {
		tx.moves = append(tx.moves, move{held.lane, holdfast.Pending, s.State})
		if err := tx.keyLeft(held.lane, held.okey); err != nil {
			return false, err
		}
	}
	if s.State == holdfast.Delivered && !tx.w.db.followed.Load() {
		return true, nil
	}
	return true, tx.event(&event{
		message: s.Seq, kind: holdfast.Attempted, state: s.State, cycle: held.cycle, attempt: held.tries + 1,
		outcome: s.Outcome, charged: s.Charged, maybe: s.Maybe, took: micros(s.Took),
		reason: string(s.Reason), code: s.Code, error: s.Error,
	})
}

// giveBack undoes a claim that was never tried.
func (tx *writeTx) giveBack(s *holdfast.Settlement, held *lease, from int64) (bool, error) {
	if held.durable {
		n, err := tx.exec(settlePending, s.Seq, from, int64(held.tries), int64(held.failures), tx.tick(), driver.Value(nil))
		if err != nil || n == 0 {
			return false, err
		}
	}
	// Behind the cursor: the lane looks at the table again.
	tx.fresh = append(tx.fresh, freshRow{lane: held.lane, due: 0})
	return true, nil
}
