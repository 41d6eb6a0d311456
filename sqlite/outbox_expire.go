package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
)

// sweepPage is how many rows one call looks at. sweepWrite is how many it changes in one
// transaction, so that writers wait a few milliseconds at most.
const (
	sweepPage  = 5000
	sweepWrite = 500
)

// sweeps holds the positions of the sweeps between their calls.
type sweeps struct {
	mu             sync.Mutex
	scanning       bool
	lane, due, seq int64 // the last row that was looked at
	aside          bool  // pending rows are done, parked ones follow
	earliest       int64 // earliest expiry that this scan has seen
	held           int64 // number of held messages that this scan has seen
	asked          asked
	purged         int64 // this purge has looked at every message up to this one
	forgotten      int64 // the same for the inbox
	notified       notified
}

// Expire implements holdfast.Sweepable. A claim expires the rows that it meets in time. Expire
// finds the others: those in lanes that are down, and parked ones. It reads the table only if
// something can have expired.
func (db *DB) Expire(ctx context.Context) (int, bool, error) {
	if !db.owns.Load() {
		return 0, false, nil // the owner does it
	}
	s := &db.sweeps
	s.mu.Lock()
	defer s.mu.Unlock()
	if may, more, err := db.askClock(ctx); !may || more || err != nil {
		return 0, more, err
	}
	now := db.clock.now()
	if !s.scanning && !db.lanes.mayHaveExpired(now) {
		return 0, false, nil
	}
	if !s.scanning {
		s.scanning, s.aside, s.lane, s.due, s.seq, s.earliest, s.held = true, false, -1, 0, 0, never, 0
	}
	expired, rows, err := db.expiryPage(ctx, now)
	if err != nil {
		return 0, false, fmt.Errorf("expire: %w", err)
	}
	n, err := db.expireRows(ctx, expired)
	if err != nil {
		return n, false, err
	}
	if rows == sweepPage {
		return n, true, nil
	}
	if !s.aside {
		s.aside, s.seq = true, 0
		return n, true, nil
	}
	s.scanning = false
	db.lanes.expiresFrom(s.earliest)
	db.held.Store(s.held)
	return n, false, nil
}

// mayHaveExpired reports whether the time of a waiting row may be over. If so, it resets the bound:
// rows that are enqueued during the scan lower it again.
func (ls *lanes) mayHaveExpired(now int64) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.nextExpiry > now {
		return false
	}
	ls.nextExpiry = never
	return true
}

func (ls *lanes) expiresFrom(at int64) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.nextExpiry = min(ls.nextExpiry, at)
}

// expiryPage reads the next rows that may have expired.
func (db *DB) expiryPage(ctx context.Context, now int64) (expired []int64, read int, err error) {
	s := &db.sweeps
	q, args := expirable, []any{s.lane, s.due, s.seq, sweepPage, now}
	if s.aside {
		q, args = expirableAside, []any{s.seq, sweepPage, now}
	}
	rows, err := db.query(ctx, q, args...)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var expires, lasts sql.NullInt64
		if err := rows.Scan(&s.lane, &s.due, &s.seq, &expires, &lasts); err != nil {
			return nil, 0, err
		}
		read++
		if !expires.Valid {
			continue
		}
		switch db.clock.judge(now, expires.Int64, lasts.Int64) {
		case belief.Over:
			expired = append(expired, s.seq)
			// A row that is being delivered now is left alone, so look again soon.
			s.earliest = min(s.earliest, now)
			continue
		case belief.Held:
			s.held++
		case belief.Lives:
		}
		s.earliest = min(s.earliest, db.clock.guard.End(expires.Int64, lasts.Int64))
	}
	return expired, read, rows.Err()
}

// expireRows ends rows whose time is over, and returns how many it ended.
func (db *DB) expireRows(ctx context.Context, seqs []int64) (int, error) {
	total := 0
	for len(seqs) > 0 {
		n := min(len(seqs), sweepWrite)
		k := &expire{db: db, seqs: seqs[:n]}
		if err := db.writer.do(ctx, k); err != nil {
			return total, fmt.Errorf("expire: %w", err)
		}
		total += k.done
		seqs = seqs[n:]
	}
	return total, nil
}

// expire ends some rows.
type expire struct {
	db   *DB
	seqs []int64
	done int
}

func (k *expire) size() (int, int) { return len(k.seqs), 0 }

func (k *expire) apply(tx *writeTx) error {
	k.done = 0
	if !k.db.owns.Load() {
		return nil // no longer the owner: another process may have them in hand
	}
	for _, seq := range k.seqs {
		won, err := k.one(tx, seq)
		if err != nil {
			return err
		}
		if won {
			k.done++
		}
	}
	return nil
}

func (k *expire) one(tx *writeTx, seq int64) (bool, error) {
	var state holdfast.State
	var expires, lasts int64
	var okey, destination string
	var cycle, tries int
	found, err := tx.conn.one(findPending, func(v []driver.Value) error {
		state, expires, okey, destination = holdfast.State(asInt(v[0])), never, asText(v[2]), asText(v[5])
		cycle, tries = int(asInt(v[3])), int(asInt(v[4]))
		if v[1] != nil {
			expires = asInt(v[1])
		}
		lasts = asInt(v[6])
		return nil
	}, seq)
	// A message that is claimed on disk is being delivered. A delivery beats the TTL.
	if err != nil || !found || k.db.clock.judge(tx.now, expires, lasts) != belief.Over || state == holdfast.Claimed || !state.CanBecome(holdfast.Expired) {
		return false, err
	}
	l, err := tx.lane(destination)
	if err != nil {
		return false, err
	}
	if state == holdfast.Pending && !k.db.lanes.untake(l, seq) {
		return false, nil
	}
	n, err := tx.exec(expireOne, seq, int64(state), tx.tick())
	if err != nil || n == 0 {
		return false, err
	}
	tx.moves = append(tx.moves, change{l, state, holdfast.Expired})
	if err := tx.event(&event{message: seq, kind: holdfast.TimedOut, state: holdfast.Expired, cycle: cycle, attempt: tries}); err != nil {
		return false, err
	}
	if err := tx.notice(seq, l, holdfast.Expired); err != nil {
		return false, err
	}
	return true, tx.placeKey(l, okey)
}

// untake makes sure that nobody can get the row from memory any more. It returns false if a
// dispatcher has it already.
func (ls *lanes) untake(l *lane, seq int64) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if _, leased := ls.leases[seq]; leased {
		return false
	}
	ls.rewind(l)
	return true
}
