package sqlite

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// never is the due time of a row that only something else can make due.
const never = math.MaxInt64

// saneAfter is the earliest wall-clock time that a machine with a working
// clock shows; before it nothing expires.
func saneAfter() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }

// jumpAfter is how far the wall clock may run ahead of the elapsed time
// before expiry is suspended for jumpGrace; longAway is the same for the time
// between two runs.
const (
	jumpAfter = time.Hour
	jumpGrace = 10 * time.Minute
	longAway  = 30 * 24 * time.Hour
)

// clock makes the store's instants: microseconds that start at the wall
// clock when the file is opened and then follow the monotonic clock, so that
// a step of the wall clock neither stalls nor bursts retries, and expiry
// neither. It never runs behind what the file has seen before: after a
// backward step and a restart, rows that wait keep their turn. Instants for
// people are made by adding the difference to the wall clock of now.
type clock struct {
	read reading
	base atomic.Int64 // the store's instant at which elapsed time is 0
	lead atomic.Int64 // of the wall clock over the store's, as people are shown it

	mu        sync.Mutex
	wallSeen  time.Time // at the last look
	ranSeen   time.Duration
	suspended time.Duration // expiry is suspended until so much has elapsed
	sane      time.Time
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

// newClock starts at the wall clock, or at last, the latest instant that the
// file knows, if that is later.
func newClock(read reading, last int64, sane time.Time) *clock {
	wall, ran := read()
	c := &clock{read: read, wallSeen: wall, ranSeen: ran, sane: sane}
	c.base.Store(max(wall.UnixMicro(), last) - ran.Microseconds())
	if last > 0 && span(last, wall.UnixMicro()) > longAway {
		// Weeks have passed since the file was last open, or the clock is
		// wrong. Time for it to be set before anything is given up.
		c.suspended = ran + jumpGrace
	}
	return c
}

func (c *clock) now() int64 {
	_, ran := c.read()
	return c.base.Load() + ran.Microseconds()
}

// reach brings the clock to an instant that another process of the file has
// written, so that what is due there is due here. It says whether that was so
// far ahead that nothing should expire for a while.
func (c *clock) reach(at int64) (jumped bool) {
	_, ran := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := at - (c.base.Load() + ran.Microseconds())
	if ahead <= 0 {
		return false
	}
	c.base.Add(ahead)
	if jumped = duration(ahead) > jumpAfter; jumped {
		c.suspended = ran + jumpGrace
	}
	return jumped
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
	return time.UnixMicro(at + shown).UTC()
}

// mayExpire says whether the wall clock can be believed; why is for a log.
func (c *clock) mayExpire() (ok bool, why string) {
	wall, ran := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if wall.Sub(c.wallSeen)-(ran-c.ranSeen) > jumpAfter {
		c.suspended = ran + jumpGrace
	}
	c.wallSeen, c.ranSeen = wall, ran
	switch {
	case wall.Before(c.sane):
		return false, "the clock shows a time before " + c.sane.Format(time.DateOnly)
	case ran < c.suspended:
		return false, "the clock jumped forward"
	}
	return true, ""
}

// micros rounds up, so that a wait is never cut short.
func micros(d time.Duration) int64 {
	m := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		m++
	}
	return m
}

// duration and span turn stored microseconds into a Duration, which holds
// less: what is longer becomes the longest.
func duration(us int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(min(max(us, -most), most)) * time.Microsecond
}

func span(from, to int64) time.Duration { return duration(to - from) }

// after adds without overflow; a negative wait is none.
func after(at int64, d time.Duration) int64 {
	m := micros(max(d, 0))
	if at > never-m {
		return never
	}
	return at + m
}
