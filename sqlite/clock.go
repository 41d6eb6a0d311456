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

// never is the due time of a row that only something else can make due.
const never = math.MaxInt64

// day is how long the wall clock must run for what it showed before to be
// forgotten.
const day = 24 * time.Hour

// saneAfter is the earliest wall-clock time that a machine with a working
// clock shows; before it nothing expires.
func saneAfter() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }

// clock makes the store's instants: microseconds that start at the wall
// clock when the file is opened and then follow the monotonic clock, so that
// a step of the wall clock neither stalls nor bursts retries, and ends nothing.
// It never runs behind what the file has seen before: after a backward step and a
// restart, rows that wait keep their turn. At a start it goes on by what the wall
// clock has gone on since the file was written last, which guard doubts: whatever
// ends by time asks judge, age or before. Instants for people are made by adding
// the difference to the wall clock of now.
type clock struct {
	read  reading
	base  atomic.Int64 // the store's instant at which elapsed time is 0
	lead  atomic.Int64 // of the wall clock over the store's, as people are shown it
	guard *belief.Guard
	sane  time.Time
	log   *slog.Logger

	mu     sync.Mutex
	wallAt time.Time // at the start
	ranAt  time.Duration
	denied int64 // of what is doubted, since the start
	high   int64 // the latest that the wall clock has shown
}

// reading is the wall clock, and the time that has elapsed by the monotonic
// clock.
type reading func() (wall time.Time, ran time.Duration)

func machineClock() reading {
	start := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(start)
	}
}

// noted is what a file knows of the clock: the latest instant of the store, what
// the wall clock showed then, and the latest time that it has ever shown. Zero:
// nothing.
type noted struct {
	at, wall, high int64
	leaps          string
}

// newClock starts at the wall clock, or goes on where the file ends.
func newClock(n noted, o *Options) *clock {
	c := &clock{read: o.clock, log: o.Logger, sane: o.SaneAfter, guard: belief.New(micros(o.ClockHold))}
	c.base.Store(math.MinInt64 / 2)
	c.begin(n)
	return c
}

// begin goes on where the file ends. What the wall clock has gone on meanwhile
// is doubted; if it has gone back, what was doubted before never was. A clock
// that could not be right told nothing.
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
		n.wall = n.high // it stood wrong when the file was written last
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
	if ahead := c.base.Load() + ran.Microseconds() - at; ahead > 0 { // beside the owner of before
		at += ahead
		c.guard.Leap(at, ahead, true)
	}
	c.base.Store(at - ran.Microseconds())
}

// doubtful is how far the wall clock may be off the monotonic one, in
// microseconds, and drift the same per microsecond: it is slewed.
const (
	doubtful = int64(time.Second / time.Microsecond)
	drift    = 1000
)

func (c *clock) now() int64 {
	_, ran := c.read()
	return c.base.Load() + ran.Microseconds()
}

// reach brings the clock to an instant that another process of the file has
// written, so that what is due there is due here. That much time has not passed.
func (c *clock) reach(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ahead := at - c.now(); ahead > 0 {
		c.base.Add(ahead)
		c.guard.Leap(at, ahead, true)
	}
}

// look asks the wall clock what of the doubt stands: if it was put back, so much
// never was. It says whether the clock is one that a machine can have, and how
// much is doubted.
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

// judge says whether what lasts so long and ends at an instant is over by now.
// Before the year 2020 nothing is.
func (c *clock) judge(now, end, lasts int64) belief.Verdict {
	if now < end {
		return belief.Lives
	}
	if sane, _ := c.look(); !sane {
		return belief.Lives
	}
	return c.guard.Judge(now, end, lasts)
}

// leadSlack is by how much the two clocks may part until people are shown it:
// what is less is a clock that is being set right bit by bit, or the time
// between two readings, and would show one instant as another at each look.
const leadSlack = int64(time.Second / time.Microsecond)

// wall turns an instant of the store into one for people, the same at each look
// until the wall clock steps.
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

// note is what the file is to know of the clock when the store has reached at.
func (c *clock) note(at int64) noted {
	c.look() // what was put back is not doubted after the next start
	wall, ran := c.read()
	shows := wall.UnixMicro() + at - c.base.Load() - ran.Microseconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.high = max(c.high, shows); ran-c.ranAt >= day {
		c.high = shows // what has shown for a day is right
	}
	return noted{at: at, wall: shows, high: c.high, leaps: c.guard.Text()}
}

// noteClock writes down what a start has to know of the clock.
func (db *DB) noteClock(c *conn, at int64) error {
	n := db.clock.note(at)
	for key, value := range map[string]driver.Value{metaClock: n.at, metaWall: n.wall, metaWallHigh: n.high, metaLeaps: n.leaps} {
		if _, err := c.exec(setMeta, key, value); err != nil {
			return err
		}
	}
	return nil
}

// lastNoted is what the file knows of the clock: what is noted now and then,
// and what was written after that.
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

// upTo goes on to an instant that was written later.
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

// duration and span turn stored microseconds into a Duration, which holds
// less: what is longer becomes the longest.
func duration(us int64) time.Duration { return rows.Duration(us) }

func span(from, to int64) time.Duration { return duration(to - from) }

// after adds without overflow; a negative wait is none.
func after(at int64, d time.Duration) int64 {
	m := micros(max(d, 0))
	if at > never-m {
		return never
	}
	return at + m
}
