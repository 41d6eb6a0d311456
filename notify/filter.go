package notify

import (
	"slices"
	"strings"
	"time"
)

// LanePrefix begins the destination of each message of a notification; the
// name of its channel follows.
const LanePrefix = "channel:"

// Filter returns what says whether the query shows a record, of which Stuck is
// set, as far as the rows before it do not matter. It looks at no body.
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

// Waits says whether the query asks for nothing that has been delivered, of
// which there are most.
func (q *Query) Waits() bool {
	return q.OnlyStuck || len(q.Status) > 0 && !slices.Contains(q.Status, Delivered)
}

// IsStuck says whether a record waits for longer than it should (NO-17).
func (q *Query) IsStuck(r *Record, now time.Time) bool {
	return q.StuckAfter > 0 && (r.Status == Pending || r.Status == Retrying) && now.Sub(r.Created) > q.StuckAfter
}
