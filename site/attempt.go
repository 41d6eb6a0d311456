package site

import (
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// Attempt is one attempt of a call, together with the state of the call after it, as auditing and
// tracking need it (SF-24, SF-34).
type Attempt struct {
	ID          holdfast.ID // of the operation
	Category    holdfast.Category
	Destination string
	Site        string // empty: the site has no name (SF-33)
	Outcome     holdfast.Outcome
	State       holdfast.State // of the operation after it
	Retries     int            // attempts after the first of its cycle, this one included
	Code        string         // code of a failure, such as "http_422"
	Error       string         // empty: delivered
	Occurred    time.Time      // when the attempt began (SF-33); zero: the target was not called
	Took        time.Duration
}

// attemptOf makes an Attempt. It returns false for a notification to central, which is not a call
// (SF-33).
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
