package rows

import (
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Row is a pointer to a struct of this package. The caller owns it: a store does not retain it.
type Row = holdfast.Row

// Instant is a time in microseconds. In a copy it is the distance from an instant that both sides
// know as the same moment. Where only one store is concerned it counts from the zero of the store's
// clock. The zero value is that instant.
type Instant int64

const (
	// None marks an absent instant: the event did not happen, or never will.
	None Instant = -1 << 63
	// Now stands for the moment at which a store puts the row.
	Now Instant = -1<<63 + 1
)

// Distance returns the distance of at from base. never is the store's value for an absent instant,
// which becomes None.
func Distance(at, base, never int64) Instant {
	if at == never || at == int64(None) {
		return None
	}
	return Instant(at - base)
}

// From reverses Distance.
func (i Instant) From(base, never int64) int64 {
	if i == None {
		return never
	}
	return base + int64(i)
}

// Micros converts a duration to microseconds, rounded up, so that nothing is due too early.
func Micros(d time.Duration) int64 {
	m := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		m++
	}
	return m
}

// Duration reverses Micros. A value that does not fit becomes the longest duration.
func Duration(us int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(min(max(us, -most), most)) * time.Microsecond
}
