package admin

import (
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

// longestToken is the longest time that a token may be given for: ten years.
const longestToken = 10 * 365 * 24 * time.Hour

// readToken returns what a new token may do, and for how long; zero: it does not end.
func readToken(t *api.NewToken) (may api.Grant, lasts time.Duration, faults []api.Fault) {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@"
	bad := func(r rune) bool { return !strings.ContainsRune(allowed, r) }
	switch {
	case t.Name == "":
		faults = append(faults, api.Fault{Field: "name", Problem: "is missing; name who or what will use the token"})
	case len(t.Name) > 64 || strings.ContainsFunc(t.Name, bad):
		faults = append(faults, api.Fault{Field: "name", Value: api.Clip(t.Name), Problem: "must be 1 to 64 letters, digits, dots, hyphens, underscores or @"})
	case t.Name == api.Local || t.Name == fanout.Subscriber || t.Name == "." || t.Name == "..":
		faults = append(faults, api.Fault{Field: "name", Value: t.Name, Problem: "is reserved; take another name"})
	}
	set := t.Rights
	switch {
	case t.Role == "":
	case len(set) > 0:
		faults = append(faults, api.Fault{Field: "rights", Problem: "exclude role, which names a set of them; leave one of the two out"})
	case t.Role.Rights() == nil:
		faults = append(faults, api.Fault{Field: "role", Value: api.Clip(string(t.Role)), Problem: "must be read, operate, auditor or admin"})
	default:
		set = t.Role.Rights()
	}
	if t.Role == "" || len(set) > 0 {
		var wrong []api.Fault
		may, wrong = api.NewGrant(set, api.Scope{Sites: t.Sites, Destinations: t.Destinations, Topics: t.Topics})
		faults = append(faults, wrong...)
	}
	if t.For != "" {
		var problem string
		lasts, problem = parseDuration(t.For)
		if problem == "" && (lasts <= 0 || lasts > longestToken) {
			problem = "must be longer than 0 and at most " + formatDuration(longestToken)
		}
		if problem != "" {
			faults = append(faults, api.Fault{Field: "for", Value: api.Clip(t.For), Problem: problem})
		}
	}
	return may, lasts, faults
}
