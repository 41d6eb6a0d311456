package postgres

import (
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// idBytes is how an id is stored: a UUID as 1 and its bytes, any other as 2
// and its text, so that no two ids look the same.
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

// never is an instant that does not come.
const never = math.MaxInt64

// micros rounds up: nothing is due a moment too early.
func micros(d time.Duration) int64 { return rows.Micros(d) }

// duration turns microseconds into a Duration, the longest where they do not fit.
func duration(us int64) time.Duration { return rows.Duration(us) }
