package link

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// reportEvery is how often central's store takes what a site reports with its polls. A write for
// each poll would cost more than its precision is worth.
const reportEvery = 30 * time.Second

// OfflineAfter is how long a site may be silent until central calls it offline: six reports.
const OfflineAfter = 6 * reportEvery

// Health is what a node of a site reports about itself with each poll. A zero value means unknown,
// or none.
type Health struct {
	Version    string          `json:"version,omitempty"`
	Node       string          `json:"node,omitempty"`
	Role       string          `json:"role,omitempty"`
	Status     string          `json:"status,omitempty"`   // its own judgement: ok, degraded, failing
	Problems   []string        `json:"problems,omitempty"` // its checks that are not ok
	Durability string          `json:"durability,omitempty"`
	Depth      int64           `json:"depth"`    // messages that wait, over all destinations
	Parked     int64           `json:"parked"`   // over all destinations
	Oldest     time.Duration   `json:"oldestNs"` // how long the oldest message has been due
	Lag        time.Duration   `json:"lagNs,omitempty"`
	Categories []CategoryDepth `json:"categories,omitempty"` // that have a message, by name
	Followers  []FollowerLag   `json:"followers,omitempty"`  // of the node's journal
	DiskFree   int64           `json:"diskFree,omitempty"`   // bytes
	DiskFull   bool            `json:"diskFull,omitempty"`
	Doubted    time.Duration   `json:"doubtedNs,omitempty"` // time that only its clock says has passed
	Held       int64           `json:"held,omitempty"`      // messages that are held because of that
	Replayed   int64           `json:"replayed,omitempty"`
	Replaying  bool            `json:"replaying,omitempty"` // it sends again what central has lost
	Stalled    time.Duration   `json:"stalledNs,omitempty"` // how long messages for central are due while none gets through
	Unsent     int64           `json:"unsent,omitempty"`    // records of its audit logs that central lacks
	UnsentFor  time.Duration   `json:"unsentForNs,omitempty"`
	Refused    string          `json:"auditProblem,omitempty"` // why central did not take the last of them
}

// CategoryDepth is what waits in one category. Destinations without a category are in "".
type CategoryDepth struct {
	Category string        `json:"category"`
	Depth    int64         `json:"depth"`
	Parked   int64         `json:"parked"`
	Oldest   time.Duration `json:"oldestNs"`
}

// FollowerLag is how far a follower of the journal is behind.
type FollowerLag struct {
	Name   string        `json:"name"`
	Behind time.Duration `json:"behindNs"` // age of the oldest entry that it has not read
}

// Limits of what central adds up.
const (
	mostCounted = 1 << 52
	mostAge     = 100 * 365 * 24 * time.Hour
)

// mostParts is how many categories, followers and problems central takes of one report.
const mostParts = 16

// clean returns the health with only values that are fit to show and to count: another machine sent
// it.
func (h Health) clean() Health {
	for _, text := range []*string{&h.Version, &h.Node, &h.Role, &h.Status, &h.Durability} {
		*text = shown.Line(*text, 64)
	}
	h.Refused, h.Unsent, h.UnsentFor = shown.Line(h.Refused, 200), min(h.Unsent, mostCounted), min(h.UnsentFor, mostAge)
	for _, n := range []*int64{&h.Depth, &h.Parked, &h.DiskFree, &h.Held, &h.Replayed, &h.Unsent} {
		*n = max(*n, 0)
	}
	for _, d := range []*time.Duration{&h.Oldest, &h.Lag, &h.Doubted, &h.Stalled, &h.UnsentFor} {
		*d = max(*d, 0)
	}
	h.Problems, h.Categories, h.Followers = few(h.Problems), few(h.Categories), few(h.Followers)
	for i := range h.Problems {
		h.Problems[i] = shown.Line(h.Problems[i], 64)
	}
	for i := range h.Categories {
		c := &h.Categories[i]
		c.Category, c.Depth, c.Parked, c.Oldest = shown.Line(c.Category, 64), max(c.Depth, 0), max(c.Parked, 0), max(c.Oldest, 0)
	}
	for i := range h.Followers {
		f := &h.Followers[i]
		f.Name, f.Behind = shown.Line(f.Name, 64), max(f.Behind, 0)
	}
	return h
}

func few[T any](list []T) []T { return slices.Clone(list[:min(len(list), mostParts)]) }

// text returns the health as central's store keeps it.
func (h Health) text() string {
	text, err := json.Marshal(h)
	if err != nil { // numbers and texts can always be encoded
		return "{}"
	}
	return string(text)
}

// healthOf reverses text. What another release has kept and this one cannot read is unknown.
func healthOf(text string) (h Health) {
	if json.Unmarshal([]byte(text), &h) != nil {
		return Health{}
	}
	return h
}

// health returns what the site reports to central with each poll.
func (s *Site) health(ctx context.Context) Health {
	var h Health
	if s.conf.Report != nil {
		h = s.conf.Report(ctx)
	}
	n := s.conf.Outbox.Counts()
	h.Version, h.Depth, h.Parked = s.conf.Version, n.Pending, n.Parked
	var due map[string]time.Duration
	if s.conf.Overdue != nil {
		due, _ = s.conf.Overdue(ctx) // on an error it is unknown
	}
	for _, d := range due {
		h.Oldest = max(h.Oldest, d)
	}
	h.Lag, h.Categories = due[s.conf.Lane], s.categories(n.Lanes, due)
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Replayed, h.Replaying = s.status.Replayed, s.status.Replaying
	if since := s.status.Stalled; !since.IsZero() {
		h.Stalled = time.Since(since)
	}
	t := &s.status.Telemetry
	h.Unsent, h.UnsentFor, h.Refused = t.Backlog, t.Lasts(), t.Problem
	return h
}

// categories sums up what waits by category.
func (s *Site) categories(lanes map[string]holdfast.LaneCounts, due map[string]time.Duration) (list []CategoryDepth) {
	for name, n := range lanes {
		if n.Pending == 0 && n.Parked == 0 {
			continue
		}
		c := CategoryDepth{Depth: n.Pending, Parked: n.Parked, Oldest: due[name]}
		if s.conf.Category != nil {
			c.Category = string(s.conf.Category(name))
		}
		if i := slices.IndexFunc(list, func(o CategoryDepth) bool { return o.Category == c.Category }); i >= 0 {
			o := &list[i]
			o.Depth, o.Parked, o.Oldest = o.Depth+c.Depth, o.Parked+c.Parked, max(o.Oldest, c.Oldest)
			continue
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b CategoryDepth) int { return strings.Compare(a.Category, b.Category) })
	return list
}
