package sqlite

import (
	"math"
	"sync"
	"time"
)

// never is the due time of a row that only something else can make due.
const never = math.MaxInt64

// saneAfter is the earliest wall-clock time that a machine with a working
// clock shows; before it nothing expires.
var saneAfter = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// jumpAfter is how far the wall clock may run ahead of the elapsed time
// before expiry is suspended for jumpGrace.
const (
	jumpAfter = time.Hour
	jumpGrace = 10 * time.Minute
)

// clock makes the store's instants: microseconds that start at the wall
// clock when the file is opened and then follow the monotonic clock, so that
// a step of the wall clock neither stalls nor bursts retries, and expiry
// neither. It never runs behind what the file has seen before: after a
// backward step and a restart, rows that wait keep their turn. Instants for
// people are made by adding the difference to the wall clock of now.
type clock struct {
	start time.Time // with its monotonic reading
	base  int64

	mu        sync.Mutex
	checked   time.Time
	suspended time.Time // expiry is suspended until then, by the monotonic clock
	sane      time.Time
}

// newClock starts at the wall clock, or at last, the latest instant that the
// file knows, if that is later.
func newClock(last int64, sane time.Time) *clock {
	now := time.Now()
	c := &clock{start: now, base: max(now.UnixMicro(), last), checked: now, sane: sane}
	if last > 0 && now.UnixMicro()-last > int64(30*24*time.Hour/time.Microsecond) {
		// Weeks have passed since the file was last open, or the clock is
		// wrong. Time for it to be set before anything is given up.
		c.suspended = now.Add(jumpGrace)
	}
	return c
}

func (c *clock) now() int64 { return c.base + time.Since(c.start).Microseconds() }

// wall turns an instant of the store into one for people.
func (c *clock) wall(at int64) time.Time {
	if at == 0 || at == never {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(at-c.now()) * time.Microsecond).UTC().Truncate(time.Microsecond)
}

// mayExpire says whether the wall clock can be believed; why is for a log.
func (c *clock) mayExpire() (ok bool, why string) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed, stepped := now.Sub(c.checked), now.Round(0).Sub(c.checked.Round(0))
	c.checked = now
	if stepped-elapsed > jumpAfter {
		c.suspended = now.Add(jumpGrace)
	}
	switch {
	case now.Before(c.sane):
		return false, "the clock shows a time before " + c.sane.Format(time.DateOnly)
	case now.Before(c.suspended):
		return false, "the clock jumped forward"
	}
	return true, ""
}

// micros rounds up, so that a wait is never cut short.
func micros(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// after adds without overflow.
func after(at int64, d time.Duration) int64 {
	m := micros(d)
	if at > never-m {
		return never
	}
	return at + m
}
