package config

import (
	"time"
)

// Policy is the shape of the waits between retries.
type Policy string

// The retry policies.
const (
	Exponential Policy = "exponential" // min(Cap, Base · Factorⁿ), n from 0
	Fixed       Policy = "fixed"       // Interval
	List        Policy = "list"        // Waits, the last of which repeats
)

// Retry says when and how often a failed message is tried again. Fields that belong to another policy are zero.
type Retry struct {
	Policy   Policy
	Base     time.Duration
	Cap      time.Duration
	Factor   float64
	Interval time.Duration
	Waits    []time.Duration
	Jitter   time.Duration // each wait is up to this much longer
	Retries  int           // after the first attempt; Unlimited: no number ends them
}

// FirstWait returns the wait before the first retry, without its jitter.
func (r Retry) FirstWait() time.Duration {
	switch r.Policy {
	case Exponential:
		return min(r.Base, r.Cap)
	case Fixed:
		return r.Interval
	case List:
		if len(r.Waits) > 0 {
			return r.Waits[0]
		}
	}
	return 0
}
