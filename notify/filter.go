package notify

import (
	"slices"
	"strings"
	"time"
)

// LanePrefix is the beginning of a notification message's destination. The name of its channel
// follows.
const LanePrefix = "channel:"

// Filter returns a function that reports whether the query selects a record, apart from Limit and
// After. The record's Stuck must be set. It does not look at bodies.
func (q *Query) Filter() func(r *Record) bool {
	words := strings.Fields(strings.ToLower(q.Subject))
	same := func(want, is string) bool { return want == "" || want == is }
	return func(r *Record) bool {
		n := &r.Notification
		switch {
		case len(q.Status) > 0 && !slices.Contains(q.Status, r.Status),
			q.OnlyStuck && !r.Stuck,
			!same(q.Channel, r.Channel), !same(q.List, n.List), !same(q.Type, n.Type),
			!same(q.Site, n.Origin.Site), !same(q.Script, n.Origin.Script),
			!q.From.IsZero() && r.Created.Before(q.From),
			!q.To.IsZero() && !r.Created.Before(q.To):
			return false
		}
		if len(words) == 0 {
			return true
		}
		subject := strings.ToLower(n.Subject)
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(subject, w) })
	}
}

// Waits reports whether the query excludes delivered notifications, which are the most.
func (q *Query) Waits() bool {
	return q.OnlyStuck || len(q.Status) > 0 && !slices.Contains(q.Status, Delivered)
}

// IsStuck reports whether a record waits longer than it should (NO-17).
func (q *Query) IsStuck(r *Record, now time.Time) bool {
	return q.StuckAfter > 0 && (r.Status == Pending || r.Status == Retrying) && now.Sub(r.Created) > q.StuckAfter
}
