package admin

import (
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// longestInterval is the longest wait between two attempts that a message may ask for.
const longestInterval = 365 * 24 * time.Hour

const mostRetries = 1_000_000

func ownRetryOf(p *holdfast.RetryPolicy) (o api.OwnRetry) {
	if p == nil {
		return o
	}
	if p.Attempts != 0 {
		n := p.Attempts - 1 // the first attempt is not a retry (SF-29)
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

// retryOf returns the policy of a message that brings a policy or parts of one. Nil: the destination's policy holds.
func retryOf(req *api.NewMessage) (*holdfast.RetryPolicy, []api.Fault) {
	var p holdfast.RetryPolicy
	var faults []api.Fault
	if n := req.MaxRetries; n != nil {
		switch {
		case *n < 0:
			faults = append(faults, api.Fault{Field: "maxRetries", Value: fmt.Sprint(*n), Problem: "must not be negative; 0 means without limit"})
		case *n > mostRetries:
			faults = append(faults, api.Fault{Field: "maxRetries", Value: fmt.Sprint(*n), Problem: fmt.Sprintf("must be at most %d; 0 means without limit", mostRetries)})
		case *n == 0:
			p.Attempts = holdfast.Unlimited
		default:
			p.Attempts = *n + 1 // the first attempt is not a retry (SF-29)
		}
	}
	if req.RetryInterval != "" {
		d, problem := parseDuration(req.RetryInterval)
		if problem == "" && d == 0 {
			problem = "is 0; write a longer one"
		}
		if problem == "" && d > longestInterval {
			problem = "is longer than " + formatDuration(longestInterval)
		}
		if problem != "" {
			faults = append(faults, api.Fault{Field: "retryInterval", Value: api.Clip(req.RetryInterval), Problem: problem})
		}
		p.First, p.Max, p.Factor = d, d, 1
	}
	if req.MaxRetries == nil && req.RetryInterval == "" {
		return nil, nil
	}
	return &p, faults
}
