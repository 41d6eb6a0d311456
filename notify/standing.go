package notify

import (
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Standing is the standing of a notification, as its sender sees it (NO-04). A notification of
// several channels has the standing of its worst copy.
type Standing struct {
	ID        holdfast.ID
	Status    Status
	Retries   int    // attempts after the first of its cycle, on the way to central or from there on
	LastError string // of the last failed attempt
	Enqueued  time.Time
	Delivered time.Time // zero: not yet
}
