package fanout

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Backoff says how the waits of a schedule grow (WH-08).
type Backoff string

// The ways of growing.
const (
	Exponential Backoff = "exponential" // by Factor and Base; the zero value means the same
	Plain       Backoff = "plain"       // as with a Factor of one second
	Off         Backoff = "off"         // each retry is at once
)

// Schedule is when a message that was not delivered is tried again (WH-03): before retry c, counted
// from 0, it waits min(Cap, Factor · Base^c). Each message keeps its own schedule exactly. Use
// DefaultSchedule, and change what is to be different.
type Schedule struct {
	Backoff Backoff       `json:"backoff,omitempty"`
	Factor  time.Duration `json:"factor"`
	Base    float64       `json:"base"`
	Cap     time.Duration `json:"cap"`
	Retries int           `json:"retries"` // attempts after the first
}

// DefaultSchedule returns the schedule of WH-03: seven retries, the last one 23 h 55 min 25 s after the
// first attempt.
func DefaultSchedule() Schedule {
	return Schedule{Backoff: Exponential, Factor: 25 * time.Second, Base: 4, Cap: 52_000 * time.Second, Retries: 7}
}

// Policy returns the schedule as a dispatcher follows it.
func (s Schedule) Policy() holdfast.RetryPolicy {
	p := holdfast.RetryPolicy{Jitter: -1, Attempts: s.Retries + 1}
	if s.Backoff == Off {
		p.List = []time.Duration{0}
		return p
	}
	if s.Backoff == Plain {
		s.Factor = time.Second
	}
	p.First, p.Max, p.Factor = min(s.Factor, s.Cap), s.Cap, s.Base
	return p
}

// Validate returns all faults of a schedule, each a *holdfast.FieldError. It wraps ErrInvalid.
func (s Schedule) Validate() error {
	const longest = 365 * 24 * time.Hour
	var faults []error
	bad := func(field string, value any, problem string) {
		faults = append(faults, &holdfast.FieldError{Field: "schedule." + field, Value: fmt.Sprint(value), Problem: problem})
	}
	if s.Backoff != "" && s.Backoff != Exponential && s.Backoff != Plain && s.Backoff != Off {
		bad("backoff", s.Backoff, "must be exponential, plain or off")
	}
	if s.Factor <= 0 || s.Factor > longest {
		bad("factor", s.Factor, "must be above 0 and at most a year")
	}
	if s.Base < 1 || s.Base > 1000 || math.IsNaN(s.Base) {
		bad("base", s.Base, "must be from 1 to 1000")
	}
	if s.Cap <= 0 || s.Cap > longest {
		bad("cap", s.Cap, "must be above 0 and at most a year")
	}
	if s.Retries < 0 || s.Retries > 1000 {
		bad("retries", s.Retries, "must be from 0 to 1000")
	}
	return invalid(errors.Join(faults...))
}
