package notify

import (
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Standing is how a notification stands, as the program that sent it is told
// (NO-04). A notification of several channels stands as the worst of them.
type Standing struct {
	ID        holdfast.ID
	Status    Status
	Retries   int    // attempts after the first of its cycle, on the way to central or from there on
	LastError string // of the last attempt that failed
	Enqueued  time.Time
	Delivered time.Time // zero: not yet
}
