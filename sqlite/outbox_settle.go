package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// settle is the work of one Settle call.
type settle struct {
	db   *DB
	list []holdfast.Settlement
	won  []bool

	plain []plainRow // delivered messages whose rows nothing else depends on
	seqs  []byte     // their seqs as JSON; then how long each attempt took
}

// plainRow is a settlement that can be written together with others.
type plainRow struct {
	at   int // index in list
	lane *lane
}

// Settle implements holdfast.Store.
func (db *DB) Settle(ctx context.Context, list ...holdfast.Settlement) ([]bool, error) {
	if len(list) == 0 {
		return nil, nil
	}
	k := &settle{db: db, list: list, won: make([]bool, len(list))}
	if err := db.writer.do(ctx, k); err != nil {
		return nil, fmt.Errorf("settle %d messages: %w", len(list), err)
	}
	return k.won, nil
}

func (k *settle) size() (rows, bytes int) {
	for i := range k.list {
		bytes += 64 + len(k.list[i].Detail)
	}
	return len(k.list), bytes
}

func (k *settle) apply(tx *writeTx) error {
	clear(k.won)
	k.plain = k.plain[:0]
	ls := k.db.lanes
	for i := range k.list {
		s := &k.list[i]
		ls.mu.Lock()
		held, ok := ls.leases[s.Seq]
		ls.mu.Unlock()
		if !ok || held.token != s.Token {
			continue // the claim is another dispatcher's, or the message has ended: that decision stands
		}
		if _, twice := tx.ended[s.Seq]; twice {
			continue // settled in this transaction
		}
		tx.expires(held.expires) // a sweep may have left the row out while it was claimed
		tx.release(s.Seq, s.Outcome != holdfast.NotStarted)
		if k.isPlain(s, &held) && (s.Detail == nil || !tx.followed()) {
			k.plain = append(k.plain, plainRow{i, held.lane})
			continue
		}
		won, err := tx.settleOne(s, &held)
		if err != nil {
			return err
		}
		k.won[i] = won
	}
	return k.settlePlain(tx)
}

// isPlain reports whether the row may be settled together with others. Nearly all messages are
// delivered, at the first try or later, and then all their rows get the same values.
func (k *settle) isPlain(s *holdfast.Settlement, held *lease) bool {
	return s.State == holdfast.Delivered && s.Outcome != holdfast.NotStarted && !s.Charged &&
		!held.durable && held.okey == ""
}

// settlePlain writes the plain rows with one statement, in two thirds of the time of a statement
// for each.
func (k *settle) settlePlain(tx *writeTx) error {
	if len(k.plain) == 0 {
		return nil
	}
	k.seqs = append(k.seqs[:0], '[')
	for n, p := range k.plain {
		if n > 0 {
			k.seqs = append(k.seqs, ',')
		}
		k.seqs = strconv.AppendInt(k.seqs, k.list[p.at].Seq, 10)
	}
	seqs, now := string(append(k.seqs, ']')), tx.tick()
	n, err := tx.exec(settleMany, now, seqs)
	if err != nil {
		return err
	}
	var settled map[int64]bool
	if int(n) != len(k.plain) {
		// Some rows were gone or decided before. The rows settled here have this very instant.
		settled = map[int64]bool{}
		if err := tx.conn.each(settledAt, func(v []driver.Value) error {
			settled[asInt(v[0])] = true
			return nil
		}, now, seqs); err != nil {
			return err
		}
	}
	notifies := false
	for _, p := range k.plain {
		if settled == nil || settled[k.list[p.at].Seq] {
			k.won[p.at] = true
			tx.moves = append(tx.moves, change{p.lane, holdfast.Pending, holdfast.Delivered})
			notifies = notifies || p.lane.notifies()
		}
	}
	if notifies {
		if _, err = tx.exec(markDelivered, now, seqs); err != nil {
			return err
		}
	}
	return k.enterPlain(tx, now)
}

// enterPlain writes the journal's entries of the plain rows, with one statement too.
func (k *settle) enterPlain(tx *writeTx, now int64) error {
	if !tx.followed() {
		return nil
	}
	k.seqs = append(k.seqs[:0], '{')
	for n, p := range k.plain {
		if n > 0 {
			k.seqs = append(k.seqs, ',')
		}
		s := &k.list[p.at]
		k.seqs = strconv.AppendInt(append(k.seqs, '"'), s.Seq, 10)
		k.seqs = strconv.AppendInt(append(k.seqs, '"', ':'), micros(max(s.Took, 0)), 10)
	}
	k.seqs = append(k.seqs, '}')
	seq, err := tx.conn.insert(settleEntries, now, string(k.seqs))
	if seq != 0 {
		tx.last.event, tx.journaled = max(tx.last.event, seq), true
	}
	return err
}

// settleOne writes one outcome. It returns false if the row is no longer in the state from which
// the lease took it: an operator or a purge was faster.
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
	// When a receiver may first have known the id. An attempt that certainly handed nothing over
	// does not count (OI-10).
	var began driver.Value
	if s.Outcome != holdfast.Unreachable && s.Outcome != holdfast.LaneFault {
		began = now - micros(max(s.Took, 0))
	}
	due := int64(never)
	var n int64
	var err error
	switch s.State {
	case holdfast.Delivered:
		n, err = tx.exec(settleDelivered, s.Seq, from, tries, failures, now)
		if err == nil && n > 0 && held.lane.notifies() {
			_, err = tx.exec(markDelivered, now, "["+strconv.FormatInt(s.Seq, 10)+"]")
		}
	case holdfast.Pending:
		due = tx.retryAt(now, s.RetryIn, held.expires)
		n, err = tx.exec(settlePending, s.Seq, from, tries, failures, due, began, int64(held.revision))
	case holdfast.Parked, holdfast.Discarded:
		n, err = tx.exec(settleAside, s.Seq, from, tries, failures, now, began, nullText(string(s.Reason)), int64(s.State))
	case holdfast.Claimed, holdfast.Expired:
		fallthrough
	default:
		return false, fmt.Errorf("settle seq %d: a claim cannot become %s: %w", s.Seq, s.State, holdfast.ErrState)
	}
	if err != nil || n == 0 {
		return false, err
	}
	if s.State == holdfast.Pending {
		if tx.w.db.marks.Load() {
			due = 0 // an operator may have set another due time: the table knows
		}
		tx.fresh = append(tx.fresh, freshRow{lane: held.lane, due: due, tried: true})
	} else {
		tx.moves = append(tx.moves, change{held.lane, holdfast.Pending, s.State})
	}
	if err := tx.placeKey(held.lane, held.okey); err != nil {
		return false, err
	}
	if s.State == holdfast.Delivered && !tx.followed() {
		return true, nil
	}
	if err := tx.event(&event{
		message: s.Seq, kind: holdfast.Attempted, state: s.State, cycle: held.cycle, attempt: held.tries + 1,
		outcome: s.Outcome, charged: s.Charged, maybe: s.Maybe, took: micros(max(s.Took, 0)),
		reason: string(s.Reason), code: s.Code, error: s.Error, detail: s.Detail,
	}); err != nil {
		return true, err
	}
	if ended, err := tx.endMarked(s.Seq); err != nil || ended || s.State != holdfast.Parked {
		return true, err
	}
	return true, tx.notice(s.Seq, held.lane, holdfast.Parked)
}

// endMarked is endGivenUp, if any message in hand was given up.
func (tx *writeTx) endMarked(seq int64) (ended bool, err error) {
	if !tx.w.db.marks.Load() {
		return false, nil
	}
	return tx.endGivenUp(seq)
}

// retryAt returns when a failed message is due: after its wait, or at its expiry. While nothing may
// expire only the wait counts; otherwise there would be a burst of retries.
func (tx *writeTx) retryAt(now int64, wait time.Duration, expires int64) int64 {
	due := after(now, wait)
	if expires <= now {
		if sane, _ := tx.w.db.clock.look(); !sane {
			return due
		}
	}
	return min(due, expires)
}

// giveBack undoes a claim that was never tried. The message keeps its place.
func (tx *writeTx) giveBack(s *holdfast.Settlement, held *lease, from int64) (bool, error) {
	if held.durable {
		n, err := tx.exec(settleBack, s.Seq, from)
		if err != nil || n == 0 {
			return false, err
		}
	}
	// The row is behind the cursor: the lane must read the table again.
	tx.fresh = append(tx.fresh, freshRow{lane: held.lane, due: 0, tried: held.tries > 0})
	if ended, err := tx.endMarked(s.Seq); err != nil || ended {
		return true, err
	}
	return true, tx.placeKey(held.lane, held.okey)
}
