package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/belief"
)

// expiries is how far a node has looked at pending or parked messages, in the order of their
// expiry. Messages that live on because of a leap of the clock are at the front of that order, and
// there may be millions. They are passed over once. They are looked at again when the belief in the
// clock has changed, after lookAgain, and when one of them ends, though not more often than their
// number allows.
type expiries struct {
	rest     bool   // what has certainly expired has been ended in this turn
	at, seq  int64  // the last row that was passed over, or ended behind such a row
	passed   int64  // number of rows that were passed over
	held     int64  // number of those that are held
	ends     int64  // the earliest end of those that end before all leaps are over
	began    int64  // when the looking began
	verdicts uint64 // the guard's verdicts by which they were passed over
	full     bool   // the page was full: there may be more
}

// lookAgain is how often all rows that were passed over are looked at again. lookShare is how long
// that is put off per row, so that it takes at most a few hundredths of the time.
const (
	lookAgain = int64(15 * time.Minute / time.Microsecond)
	lookShare = int64(time.Millisecond / time.Microsecond)
)

type expirable struct {
	seq, expires, lasts int64
	key                 orderingKey // without a key: only the lane
}

// page finds the rows to end, for one page.
func (x *expiries) page(tx *ownTx, find string, now int64) (over []expirable, err error) {
	guard := tx.db.clock.guard
	if !x.rest {
		longest := guard.End(0, 0) // all leaps together cannot make a message end later than this
		over, err = tx.expirable(find, 0, 0, now-longest, sweepWrite)
		return over, err
	}
	if v := guard.Verdicts() + 1; v != x.verdicts || x.outdated(now) {
		*x = expiries{rest: true, verdicts: v, began: now, ends: never}
	}
	list, err := tx.expirable(find, x.at, x.seq, now, sweepPage)
	x.full = len(list) == sweepPage
	for _, e := range list {
		x.at, x.seq = e.expires, e.seq
		switch guard.Judge(now, e.expires, e.lasts) {
		case belief.Over:
			if over = append(over, e); len(over) == sweepWrite {
				x.full = true
				return over, err
			}
			continue
		case belief.Held:
			x.held++
		case belief.Lives:
		}
		x.passed++
		if end := guard.End(e.expires, e.lasts); end < e.expires+guard.End(0, 0) {
			x.ends = min(x.ends, end)
		}
	}
	return over, err
}

// outdated reports whether all rows that were passed over must be looked at again.
func (x *expiries) outdated(now int64) bool {
	return now-x.began >= lookAgain || now >= x.ends && now-x.began >= x.passed*lookShare
}

// turned chooses the next step after a page in which so many rows were ended, and reports whether
// that step belongs to the same turn.
func (x *expiries) turned(guard *belief.Guard, ended int) (more bool) {
	switch {
	case x.rest:
		x.rest = x.full
		return x.full
	case ended == sweepWrite:
		return true
	case guard.End(0, 0) > 0:
		x.rest = true
		return true
	}
	*x = expiries{} // no leap: all rows have been read
	return false
}

func (tx *ownTx) expirable(find string, at, seq, until int64, limit int) (list []expirable, err error) {
	err = tx.query(find, []any{limit, at, seq, until}, func(rows pgx.Rows) error {
		e, err := scanExpirable(rows)
		list = append(list, e)
		return err
	})
	return list, err
}

func scanExpirable(rows pgx.Rows) (e expirable, err error) {
	err = rows.Scan(&e.seq, &e.key.lane, &e.key.key, &e.expires, &e.lasts)
	return e, err
}
