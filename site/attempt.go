package site

import (
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// Attempt is one attempt of a call and how the call stands after it, together:
// what an audit and a tracking need (SF-24, SF-34).
type Attempt struct {
	ID          holdfast.ID // of the operation
	Category    holdfast.Category
	Destination string
	Site        string // empty: it has no name (SF-33)
	Outcome     holdfast.Outcome
	State       holdfast.State // of the operation after it
	Retries     int            // attempts after the first of its cycle, this one included
	Code        string         // of a failure: "http_422"
	Error       string         // empty: it was delivered
	Occurred    time.Time      // when the attempt began (SF-33); zero: nobody was asked
	Took        time.Duration
}

// attemptOf makes it; false for a notification on its way to central, which is
// no call (SF-33).
func (s *Site) attemptOf(a *holdfast.AttemptInfo) (Attempt, bool) {
	d, ok := s.conf.Destinations[a.Destination]
	if !ok {
		return Attempt{}, false
	}
	out := Attempt{
		ID: a.ID, Category: d.Category, Destination: a.Destination, Outcome: a.Outcome, State: a.State, Retries: a.Retries,
		Occurred: a.Began, Took: a.Took,
	}
	if s.conf.Name != notify.UnknownSite {
		out.Site = s.conf.Name
	}
	if a.Failure != nil {
		out.Code, out.Error = a.Failure.Code, a.Failure.Error()
	}
	return out, true
}
