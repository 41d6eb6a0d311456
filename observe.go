package holdfast

import "time"

// Observer is told what the library does, for metrics and tests. Calls come from many
// goroutines and must not block. A nil Observer is told nothing.
type Observer interface {
	// ObserveAttempt follows every attempt whose outcome has been recorded.
	ObserveAttempt(a AttemptInfo)
	// ObserveExpired tells how many messages expired at once.
	ObserveExpired(n int)
	// ObserveReceived follows every incoming message.
	ObserveReceived(r ReceivedInfo)
}

// AttemptInfo is the end of one attempt.
type AttemptInfo struct {
	ID          ID // of the message
	Source      string
	Destination string
	Endpoint    string
	Headers     map[string]string // of the message; must not be changed
	Created     time.Time         // when the message was accepted
	Outcome     Outcome
	State       State     // after it
	Reason      Reason    // of a parked or discarded message
	Cycle       int       // from 1
	Retries     int       // attempts after the first of its cycle, this one included
	Began       time.Time // zero: the deliverer was not called
	Took        time.Duration
	Response    []byte   // of a delivery; must not be changed
	Note        string   // of a delivery: Receipt.Note
	Failure     *Failure // nil: delivered
}

// ReceivedInfo is the end of one incoming message.
type ReceivedInfo struct {
	Source, Endpoint string
	Duplicate        bool
	Took             time.Duration
	Err              error
}
