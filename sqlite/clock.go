package sqlite

import (
	"database/sql/driver"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/rows"
)

// never is the due time of a row that only another event can make due.
const never = math.MaxInt64

// day is how long the wall clock must run until the store forgets what it showed before.
const day = 24 * time.Hour

// saneAfter is the earliest wall-clock time of a machine with a working clock. Before it nothing
// expires.
func saneAfter() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }

// clock makes the store's instants, in microseconds. They start at the wall clock when the file is
// opened, and then follow the monotonic clock. So a step of the wall clock neither stalls retries
// nor causes a burst of them, and ends nothing. The clock never runs behind what the file has seen:
// after a backward step and a restart, waiting rows keep their turn.
//
// At a start the clock advances by as much as the wall clock has advanced since the last write to
// the file. guard doubts that time: code that ends something by time asks judge, age or before. An
// instant for people is the store's instant plus the present difference to the wall clock.
type clock struct {
	read  reading
	base  atomic.Int64 // the store's instant at which elapsed time is 0
	lead  atomic.Int64 // how far the wall clock is ahead of the store's clock, as people are shown it
	guard *belief.Guard
	sane  time.Time
	log   *slog.Logger

	mu     sync.Mutex
	wallAt time.Time // at the start
	ranAt  time.Duration
	denied int64 // doubted time that was denied since the start
	high   int64 // the latest time that the wall clock has shown
}

// reading returns the wall clock's time, and the time that has elapsed by the monotonic clock.
type reading func() (wall time.Time, ran time.Duration)

func machineClock() reading {
	start := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(start)
	}
}

// noted is what a file knows about the clock: the latest instant of the store, what the wall clock
// showed then, and the latest time that it has ever shown. The zero value means that the file knows
// nothing.
type noted struct {
	at, wall, high int64
	leaps          string
}

// newClock starts at the wall clock, or continues where the file ends.
func newClock(n noted, o *Options) *clock {
	c := &clock{read: o.clock, log: o.Logger, sane: o.SaneAfter, guard: belief.New(micros(o.ClockHold))}
	c.base.Store(math.MinInt64 / 2)
	c.begin(n)
	return c
}

// begin continues where the file ends. Time by which the wall clock has advanced meanwhile is
// doubted. If the wall clock has gone back, time that was doubted before has not passed. A clock
// that was not sane proves nothing.
func (c *clock) begin(n noted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, ran := c.read()
	c.wallAt, c.ranAt, c.denied, c.high = wall, ran, 0, n.high
	shows := wall.UnixMicro()
	if n.at == 0 {
		n.at, n.wall = shows, shows
	}
	if err := c.guard.Load(n.leaps); err != nil {
		c.log.Error("what the file knows of the clock is not readable", slog.Any("error", err))
	}
	if n.high > n.wall && n.high <= shows {
		n.wall = n.high // the wall clock was wrong when the file was written last
	}
	gap := shows - n.wall
	if n.wall < c.sane.UnixMicro() {
		gap = 0
	}
	if gap < -doubtful {
		c.guard.Deny(-gap)
	}
	at := n.at + max(gap, 0)
	c.guard.Leap(at, gap, false)
	if ahead := c.base.Load() + ran.Microseconds() - at; ahead > 0 { // this process ran beside the former owner
		at += ahead
		c.guard.Leap(at, ahead, true)
	}
	c.base.Store(at - ran.Microseconds())
}

// doubtful is how far the wall clock may be off the monotonic clock, in microseconds. drift allows
// for slewing: another microsecond per so many elapsed microseconds.
const (
	doubtful = int64(time.Second / time.Microsecond)
	drift    = 1000
)

func (c *clock) now() int64 {
	_, ran := c.read()
	return c.base.Load() + ran.Microseconds()
}

// reach advances the clock to an instant that another process of the file has written, so that rows
// due at that instant are due here. The time of the advance counts as time that has not passed.
func (c *clock) reach(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ahead := at - c.now(); ahead > 0 {
		c.base.Add(ahead)
		c.guard.Leap(at, ahead, true)
	}
}

// look compares the doubted time with the wall clock: time by which the wall clock was put back has
// not passed. It reports whether the clock is sane, and returns how much time is still doubted.
func (c *clock) look() (sane bool, doubt time.Duration) {
	wall, ran := c.read()
	now := c.base.Load() + ran.Microseconds()
	left, _ := c.guard.Doubt(now)
	if left > 0 {
		c.mu.Lock()
		elapsed := (ran - c.ranAt).Microseconds()
		back := elapsed - wall.Sub(c.wallAt).Microseconds() - c.denied
		if back > doubtful+elapsed/drift {
			c.denied += c.guard.Deny(back)
		}
		c.mu.Unlock()
		c.guard.Settle(now)
		left, _ = c.guard.Doubt(now)
	}
	return !wall.Before(c.sane), duration(left)
}

// judge decides whether something that ends at end, and lasts for so long, is over. Before the year
// 2020 nothing is.
func (c *clock) judge(now, end, lasts int64) belief.Verdict {
	if now < end {
		return belief.Lives
	}
	if sane, _ := c.look(); !sane {
		return belief.Lives
	}
	return c.guard.Judge(now, end, lasts)
}

// leadSlack is how far the two clocks may part before people are shown the difference. A smaller
// difference comes from a clock that is being slewed, or from the time between two readings; with
// it, one instant would look different each time.
const leadSlack = int64(time.Second / time.Microsecond)

// wall converts an instant of the store for people. The result stays the same until the wall clock
// steps.
func (c *clock) wall(at int64) time.Time {
	if at == 0 || at == never {
		return time.Time{}
	}
	wall, ran := c.read()
	lead, shown := wall.UnixMicro()-c.base.Load()-ran.Microseconds(), c.lead.Load()
	if parted := lead - shown; parted >= leadSlack || parted <= -leadSlack {
		c.lead.Store(lead)
		shown = lead
	}
	return time.UnixMicro(at + c.guard.Shift(at) + shown).UTC()
}

// note returns what the file must know about the clock when the store has reached at.
func (c *clock) note(at int64) noted {
	c.look() // after the next start, time that was put back must not be doubted again
	wall, ran := c.read()
	shows := wall.UnixMicro() + at - c.base.Load() - ran.Microseconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.high = max(c.high, shows); ran-c.ranAt >= day {
		c.high = shows // the clock has shown it for a day, so it is right
	}
	return noted{at: at, wall: shows, high: c.high, leaps: c.guard.Text()}
}

// noteClock writes what a start has to know about the clock.
func (db *DB) noteClock(c *conn, at int64) error {
	n := db.clock.note(at)
	for key, value := range map[string]driver.Value{metaClock: n.at, metaWall: n.wall, metaWallHigh: n.high, metaLeaps: n.leaps} {
		if _, err := c.exec(setMeta, key, value); err != nil {
			return err
		}
	}
	return nil
}

// lastNoted returns what the file knows about the clock: the last note, and what was written after
// it.
func (db *DB) lastNoted(c *conn) (n noted, err error) {
	for key, into := range map[string]*int64{metaClock: &n.at, metaWall: &n.wall, metaWallHigh: &n.high} {
		if *into, err = c.meta(key); err != nil {
			return n, err
		}
	}
	if n.leaps, err = c.metaText(metaLeaps); err != nil {
		return n, err
	}
	err = c.rows(queries[lastInstant], func(v []driver.Value) error {
		n = n.upTo(asInt(v[0]))
		return nil
	})
	return n, err
}

// upTo advances to an instant that was written later.
func (n noted) upTo(at int64) noted {
	if n.wall == 0 {
		n.wall = n.at
	}
	if later := at - n.at; later > 0 {
		n.at, n.wall = at, n.wall+later
	}
	return n
}

// micros rounds up, so that a wait is never cut short.
func micros(d time.Duration) int64 { return rows.Micros(d) }

// duration and span convert stored microseconds to a Duration, which has a smaller range. A longer
// time becomes the longest Duration.
func duration(us int64) time.Duration { return rows.Duration(us) }

func span(from, to int64) time.Duration { return duration(to - from) }

// after adds without overflow. It treats a negative wait as zero.
func after(at int64, d time.Duration) int64 {
	m := micros(max(d, 0))
	if at > never-m {
		return never
	}
	return at + m
}
