package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
)

// clock is this node's knowledge of the time in the database: how far it had come at a moment of
// this machine's monotonic clock, and how much of it is doubtful. A step of the database's clock
// does not change it.
type clock struct {
	hold  int64
	guard *belief.Guard // what was committed and read last; a heartbeat judges with its own guard

	mu      sync.Mutex
	at      int64     // time of the database
	known   int64     // time in the row that was read last
	since   time.Time // when this node learned at, by the monotonic clock
	lead    int64     // lead of the database's clock over at
	noted   int64     // the lead as the database stores it, beside the leaps
	shown   int64     // the part of noted that is shown to people
	held    int64     // number of held messages, by the last sweep
	acted   uint64    // verdicts of the guard, and one for the start, on which a sweep has acted
	doubted bool      // the doubt has been logged
	heard   time.Time // the time that another machine's clock has shown; zero: nothing to act on
	heardAt time.Time // when heard was set
}

const (
	clockSecond = int64(time.Second / time.Microsecond)
	// clockSlack is how far two clocks may differ between two heartbeats. startMost is how much of
	// the time since the very last heartbeat a starting node believes.
	clockSlack = clockSecond
	startMost  = 5 * clockSecond
)

func newClock(hold time.Duration) *clock {
	return &clock{hold: micros(hold), guard: belief.New(micros(hold))}
}

// seen returns how far time has come, as this node has seen it pass. 0 means that it has not looked
// yet.
func (c *clock) seen() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seenLocked()
}

func (c *clock) seenLocked() int64 {
	if c.at == 0 {
		return 0
	}
	return c.at + time.Since(c.since).Microseconds()
}

// clockRow is the row of hf_clock, and the time that the database's clock shows now.
type clockRow struct {
	at, raw, high int64
	leaps         string
	shows         int64
}

const (
	clockRead  = `SELECT at, raw, high, leaps, hf_raw() FROM hf_clock`
	clockLock  = clockRead + ` FOR UPDATE`
	clockWrite = `UPDATE hf_clock SET at = $1, raw = $2, high = $3, most = $4, leaps = $5`
)

func (r *clockRow) scan(rows pgx.Rows) error {
	return rows.Scan(&r.at, &r.raw, &r.high, &r.leaps, &r.shows)
}

// adopt takes over what the database knows, since another node may have seen more. It ignores a row
// that is older than the one that was adopted last.
func (c *clock) adopt(r *clockRow, log *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.at < c.known {
		return
	}
	c.known = r.at
	if c.guard.Text() != r.leaps {
		if err := c.guard.Load(r.leaps); err != nil {
			log.Error("the database's record of the clock cannot be read", slog.Any("error", err))
		}
	}
	if seen := c.seenLocked(); r.at > seen {
		c.at, c.since = r.at+max(min(r.shows-r.raw, startMost), 0), time.Now()
	}
	c.lead, c.noted = r.shows-c.seenLocked(), r.raw-r.at
}

// tickClock writes how far time has come. A node that has just started cannot know it; what the
// clock claims beyond a few seconds is in doubt. A clock that was put back meanwhile takes back the
// doubtful part.
func (db *DB) tickClock(ctx context.Context) error {
	c := db.clock
	var r clockRow
	var acted time.Time
	err := db.own(ctx, func(tx *ownTx) error {
		if err := tx.query(clockLock, nil, r.scan); err != nil {
			return err
		}
		fresh, at, was := c.seen() == 0, r.at, r.raw
		c.adopt(&r, db.log)
		guard := c.judged(&r) // a separate guard: concurrent readers see what is committed
		acted = c.actOnHeard(guard, &r)
		if !fresh {
			at = max(at, c.seen())
		} else {
			if r.high > was && r.high <= r.shows {
				was = r.high // the clock was wrong at the last heartbeat
			}
			gap := r.shows - was
			at += max(gap, 0)
			if gap > startMost {
				guard.Leap(at, gap, false)
			}
		}
		if back := (at - r.at) - (r.shows - r.raw); back > clockSlack {
			guard.Deny(back)
		}
		guard.Settle(at)
		r.at, r.raw, r.high, r.leaps = at, r.shows, max(r.high, r.shows), guard.Text()
		most := max(2*micros(time.Duration(beatShare*float64(db.opts.Lease))), clockSecond)
		return tx.exec(clockWrite, r.at, r.raw, r.high, most, r.leaps)
	})
	if err != nil {
		return fmt.Errorf("note how far time has come: %w", err)
	}
	c.adopt(&r, db.log)
	c.mu.Lock()
	if c.heard.Equal(acted) { // otherwise another time was heard meanwhile
		c.heard = time.Time{}
	}
	c.mu.Unlock()
	db.tellDoubt()
	return nil
}

// judged returns a guard that knows what the row says, for a caller that changes it.
func (c *clock) judged(r *clockRow) *belief.Guard {
	guard := belief.New(c.hold)
	_ = guard.Load(r.leaps) // adopt logs what cannot be read
	return guard
}

// askClock reads how far time has come. Callers need it before they end anything because of the
// time.
func (db *DB) askClock(ctx context.Context) (now int64, err error) {
	var r clockRow
	if err := db.read(ctx, clockRead, nil, r.scan); err != nil {
		return 0, fmt.Errorf("read how far time has come: %w", err)
	}
	db.clock.adopt(&r, db.log)
	if doubt, left := db.clock.guard.Doubt(db.clock.seen()); doubt > 0 && left <= 0 {
		if err := db.tickClock(ctx); err != nil { // the doubt has lasted long enough
			return 0, err
		}
	}
	return db.clock.seen(), nil
}

// wall turns an instant into one for people, by the clock of the database as of the last heartbeat.
// It leaves out time that a leap added and that never passed. The clock's lead counts in whole
// seconds, so that all nodes show the same instant. It is taken over only when it has changed by a
// second, so that an instant stays the same until the clock steps.
func (c *clock) wall(at int64) time.Time {
	if at == 0 || at == never {
		return time.Time{}
	}
	c.mu.Lock()
	if parted := c.noted - c.shown; parted >= clockSlack || parted <= -clockSlack {
		c.shown = duration(c.noted).Round(time.Second).Microseconds()
	}
	shown := c.shown
	c.mu.Unlock()
	return time.UnixMicro(at + c.guard.Shift(at) + shown).UTC()
}

// leaps returns the parameters of forgetInbox.
func (c *clock) leaps() (at, size []int64) {
	at, size = []int64{}, []int64{}
	for _, l := range c.guard.Leaps() {
		at, size = append(at, l.At), append(size, l.Doubt+l.False)
	}
	return at, size
}

// tellHeld records how many messages are held.
func (c *clock) tellHeld(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = n
}

func (db *DB) tellDoubt() {
	c := db.clock
	doubt, left := c.guard.Doubt(c.seen())
	c.mu.Lock()
	was := c.doubted
	c.doubted = doubt > 0
	c.mu.Unlock()
	switch {
	case doubt > 0 && !was:
		db.log.Warn("only the database's clock claims that time has passed: messages that would end because of it are held",
			slog.Duration("doubted", duration(doubt)), slog.Duration("for_at_most", duration(left)))
	case doubt == 0 && was:
		db.log.Info("the database's clock is trusted again")
	}
}

// Doubt implements holdfast.Doubting.
func (db *DB) Doubt() holdfast.Doubt {
	c := db.clock
	doubt, left := c.guard.Doubt(c.seen())
	c.mu.Lock()
	defer c.mu.Unlock()
	return holdfast.Doubt{Claimed: duration(doubt), Left: duration(left), Held: c.held}
}

// HearTime implements holdfast.Doubting. It writes to the database, at most once a minute while the
// times differ.
func (db *DB) HearTime(at time.Time) {
	c := db.clock
	if doubt, _ := c.guard.Doubt(c.seen()); doubt == 0 {
		return
	}
	c.mu.Lock()
	agrees := time.UnixMicro(c.seenLocked()+c.lead).Sub(at).Abs() <= holdfast.ClockSkew
	again := !agrees && time.Since(c.heardAt) < time.Minute
	if !again {
		c.heard, c.heardAt = at, time.Now()
	}
	c.mu.Unlock()
	if again {
		return
	}
	ctx, cancel := context.WithTimeout(db.life, db.opts.Timeout)
	defer cancel()
	if err := db.tickClock(ctx); err != nil {
		db.log.ErrorContext(ctx, "the time of another clock could not be recorded", slog.Any("error", err))
	}
}

// actOnHeard decides by another machine's clock, and returns the time that it has shown.
func (c *clock) actOnHeard(guard *belief.Guard, r *clockRow) (heard time.Time) {
	c.mu.Lock()
	heard = c.heard
	ago := time.Since(c.heardAt)
	c.mu.Unlock()
	switch {
	case heard.IsZero():
	case time.UnixMicro(r.shows).Sub(heard.Add(ago)).Abs() <= holdfast.ClockSkew:
		guard.Confirm()
	default:
		guard.Contradict(c.seen())
	}
	return heard
}
