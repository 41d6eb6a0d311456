package admin

import (
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// longestInterval is the longest wait between two attempts that a message may
// ask for.
const longestInterval = 365 * 24 * time.Hour

// OwnRetry is what a message says of its retries, as NewMessage takes it.
type OwnRetry struct {
	MaxRetries    *int   `json:"maxRetries,omitempty" doc:"Its own limit: retries after the first attempt, of which those that find nobody do not count; 0: without limit; -1: it is never retried, as only a Go program can ask. Absent: the destination's."`
	RetryInterval string `json:"retryInterval,omitempty" doc:"Its own fixed wait between two attempts. Absent: the destination's waits, or waits of its own that grow, as only a Go program can give." example:"30s"`
}

func ownRetryOf(p *holdfast.RetryPolicy) (o OwnRetry) {
	if p == nil {
		return o
	}
	if p.Attempts != 0 {
		n := p.Attempts - 1 // the first attempt is no retry (SF-29)
		switch p.Attempts {
		case holdfast.Unlimited:
			n = 0
		case 1:
			n = -1
		}
		o.MaxRetries = &n
	}
	if p.Factor == 1 && p.First > 0 {
		o.RetryInterval = formatDuration(p.First)
	}
	return o
}

// retryOf is the policy of a message that brings one, or parts of one; nil: all
// is the destination's.
func retryOf(req *NewMessage) (*holdfast.RetryPolicy, []Fault) {
	var p holdfast.RetryPolicy
	var faults []Fault
	if n := req.MaxRetries; n != nil {
		switch {
		case *n < 0:
			faults = append(faults, Fault{"maxRetries", fmt.Sprint(*n), "must not be negative; 0 means without limit"})
		case *n > mostRetries:
			faults = append(faults, Fault{"maxRetries", fmt.Sprint(*n), fmt.Sprintf("must be at most %d; 0 means without limit", mostRetries)})
		case *n == 0:
			p.Attempts = holdfast.Unlimited
		default:
			p.Attempts = *n + 1 // the first attempt is not a retry (SF-29)
		}
	}
	if req.RetryInterval != "" {
		d, problem := parseDuration(req.RetryInterval)
		if problem == "" && d == 0 {
			problem = "would not wait at all; write a longer one"
		}
		if problem == "" && d > longestInterval {
			problem = "is longer than " + formatDuration(longestInterval)
		}
		if problem != "" {
			faults = append(faults, Fault{"retryInterval", clip(req.RetryInterval), problem})
		}
		p.First, p.Max, p.Factor = d, d, 1
	}
	if req.MaxRetries == nil && req.RetryInterval == "" {
		return nil, nil
	}
	return &p, faults
}
