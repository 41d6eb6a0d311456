package postgres

import (
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// idBytes returns the stored form of an id: 1 and the bytes of a UUID, or 2 and the text of any
// other id, so that no two ids look the same.
func idBytes(id holdfast.ID) []byte {
	if u, ok := id.UUID(); ok {
		return append([]byte{1}, u[:]...)
	}
	return append([]byte{2}, id...)
}

func idFrom(b []byte) holdfast.ID {
	if len(b) == 17 && b[0] == 1 {
		return holdfast.IDOf([16]byte(b[1:]))
	}
	if len(b) > 0 {
		return holdfast.ID(b[1:])
	}
	return ""
}

func nullText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// never is an instant that never comes.
const never = math.MaxInt64

// micros rounds up: nothing is due a moment too early.
func micros(d time.Duration) int64 { return rows.Micros(d) }

// duration converts microseconds to a Duration, or to the longest one if they do not fit.
func duration(us int64) time.Duration { return rows.Duration(us) }
