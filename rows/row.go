package rows

import (
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Row is a pointer to a struct of this package. It is the caller's: a store keeps nothing of
// it.
type Row = holdfast.Row

// Instant is a time in microseconds: a distance from an instant that both sides know as
// the same moment, or, where one store only is concerned, from the zero of its clock. The
// zero value is that instant.
type Instant int64

const (
	// None is an instant that there is not: it was not, or never comes.
	None Instant = -1 << 63
	// Now is the moment at which a store puts the row.
	Now Instant = -1<<63 + 1
)

// Distance is how far an instant is from base; never is the store's word for one that
// does not come.
func Distance(at, base, never int64) Instant {
	if at == never || at == int64(None) {
		return None
	}
	return Instant(at - base)
}

// From is the reverse of Distance.
func (i Instant) From(base, never int64) int64 {
	if i == None {
		return never
	}
	return base + int64(i)
}

// Micros is a duration in microseconds, rounded up: nothing is due a moment too early.
func Micros(d time.Duration) int64 {
	m := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		m++
	}
	return m
}

// Duration is the reverse of Micros; where it does not fit, it is the longest.
func Duration(us int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(min(max(us, -most), most)) * time.Microsecond
}
