package chat

import (
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// part returns an end that is known before the others.
func (e *end) part(i int) notify.Part {
	return notify.Part{Ends: map[int]notify.Delivery{i: e.Delivery}, Server: e.server, TLS: e.tls, Truncated: e.truncated}
}

// report combines the ends of all recipients.
func report(ends []end) notify.Report {
	r := notify.Report{To: make([]notify.Delivery, len(ends))}
	var servers, ciphers []string
	waiting := false // some recipient's server was reached, but the delivery failed
	for i := range ends {
		e := &ends[i]
		r.To[i] = e.Delivery
		r.Truncated = r.Truncated || e.truncated
		waiting = waiting || e.Outcome == notify.Deferred
		r.Served = r.Served || e.Outcome == notify.Accepted || e.alone
		servers, ciphers = add(servers, e.server), add(ciphers, e.tls)
	}
	r.Server, r.TLS = clip(strings.Join(servers, ", "), 255), clip(strings.Join(ciphers, ", "), 255)
	for _, o := range []holdfast.Outcome{holdfast.NotStarted, holdfast.LaneFault, holdfast.Unreachable} {
		if o == holdfast.Unreachable && waiting {
			break // it counts as an attempt
		}
		if r.Fault = first(ends, o); r.Fault != nil {
			break
		}
	}
	for i := range ends {
		if f := ends[i].fault; f != nil && (r.Fault == nil || f.Outcome != r.Fault.Outcome) {
			r.To[i] = deferred(f)
		}
	}
	return r
}

// first returns the first fault with the given outcome, with the longest wait of all faults with
// that outcome.
func first(ends []end, o holdfast.Outcome) (f *holdfast.Failure) {
	for i := range ends {
		switch e := &ends[i]; {
		case e.fault == nil || e.fault.Outcome != o:
		case f == nil:
			f = e.fault
		default:
			f.RetryAfter = max(f.RetryAfter, e.fault.RetryAfter)
		}
	}
	return f
}

func add(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
