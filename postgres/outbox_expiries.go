package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/belief"
)

// expiries is how far a node has looked at what waits, or is parked, in the order in
// which it expires. What a leap of the clock lets live stands at the front of that
// order, and may be millions of rows: it is passed over once, and looked at again when
// the belief in the clock has changed, when one of it ends, though not more often than
// its number allows, and after lookAgain.
type expiries struct {
	rest     bool   // what is over for certain has been ended in this turn
	at, seq  int64  // the last row that was passed over, or ended behind one
	passed   int64  // so many were passed over
	held     int64  // of those, so many are held
	ends     int64  // the first of them that ends before all leaps are over
	began    int64  // when they were begun to be looked at
	verdicts uint64 // by which they were passed over
	full     bool   // the page was: there may be more
}

// lookAgain is how often all is looked at that was passed over, lookShare how long
// that is put off for each row, so that it takes some hundredths of the time at most.
const (
	lookAgain = int64(15 * time.Minute / time.Microsecond)
	lookShare = int64(time.Millisecond / time.Microsecond)
)

type expirable struct {
	seq, expires, lasts int64
	key                 orderingKey // without one: only the lane
}

// page finds rows to be ended, of one page.
func (x *expiries) page(tx *ownTx, find string, now int64) (over []expirable, err error) {
	guard := tx.db.clock.guard
	if !x.rest {
		longest := guard.End(0, 0) // nothing ends later than all the leaps make it
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

// outdated says whether all that was passed over is to be looked at again.
func (x *expiries) outdated(now int64) bool {
	return now-x.began >= lookAgain || now >= x.ends && now-x.began >= x.passed*lookShare
}

// turned says what comes after a page of which so many were ended, and whether that is
// in the same turn.
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
	*x = expiries{} // nothing leapt: all has been looked at
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
