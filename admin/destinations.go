package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// DestinationStatus is a destination with its counts and its lane.
type DestinationStatus struct {
	Name        string     `json:"name"`
	Category    string     `json:"category,omitempty" doc:"external-system, cached-db-write, notification or another; absent: a peer."`
	Configured  bool       `json:"configured" doc:"False: messages for it are kept, and it is in no configuration any more."`
	Pending     int64      `json:"pending"`
	Parked      int64      `json:"parked"`
	Expired     int64      `json:"expired"`
	Lane        string     `json:"lane" enum:"up,down,held,unknown" doc:"down: its last attempts failed, and one message probes it from time to time; held: a fault of the destination itself, such as refused credentials."`
	Problem     string     `json:"problem,omitempty" doc:"What the last failure said, or why the lane is held."`
	NextProbe   *time.Time `json:"nextProbe,omitempty" doc:"Of a lane that is down or held."`
	Failures    int        `json:"failures" doc:"Failed attempts in a row."`
	InFlight    int        `json:"inFlight" doc:"Requests under way."`
	Concurrency int        `json:"concurrency" doc:"How many requests may be under way now."`
	TTL         string     `json:"ttl,omitempty" doc:"Of a message that gives none."`
	Timetable   []string   `json:"timetable,omitempty" nullable:"false" doc:"When a message that says nothing else is tried."`
}

// DestinationList is all destinations of a node, by name.
type DestinationList struct {
	Destinations []DestinationStatus `json:"destinations" nullable:"false"`
}

type destinationsOutput struct{ Body DestinationList }

func (b *builder) destinations() {
	handle(b, route{
		method: http.MethodGet, path: "/v1/destinations", id: "list-destinations", tag: "destinations", role: Read,
		summary: "List destinations", description: "What waits for each, and how its lane fares. The numbers are kept in memory: asking costs nothing.",
	}, b.listDestinations)
}

func (s *Server) listDestinations(context.Context, *struct{}) (*destinationsOutput, error) {
	counts := s.Outbox.Counts().Lanes
	lanes := map[string]holdfast.LaneStatus{}
	if s.Lanes != nil {
		for _, l := range s.Lanes() {
			lanes[l.Destination] = l
		}
	}
	list := []DestinationStatus{}
	seen := map[string]bool{}
	for _, d := range s.Destinations() {
		status := statusOf(d.Name, counts[d.Name], lanes)
		status.Configured, status.Category = true, string(d.Category)
		status.TTL = "none"
		if d.TTL > 0 {
			status.TTL = formatDuration(d.TTL)
		}
		table := d.Retry.Over(holdfast.DefaultRetry()).Timetable(10)
		status.Timetable = strings.Split(strings.TrimSuffix(table, "\n"), "\n")
		list = append(list, status)
		seen[d.Name] = true
	}
	for name, c := range counts {
		if !seen[name] && c != (holdfast.LaneCounts{}) && !strings.HasPrefix(name, notify.LanePrefix) { // GET /v1/channels has those
			list = append(list, statusOf(name, c, lanes))
		}
	}
	slices.SortFunc(list, func(a, b DestinationStatus) int { return cmp.Compare(a.Name, b.Name) })
	return &destinationsOutput{DestinationList{list}}, nil
}

func statusOf(name string, c holdfast.LaneCounts, lanes map[string]holdfast.LaneStatus) DestinationStatus {
	status := DestinationStatus{Name: name, Pending: c.Pending, Parked: c.Parked, Expired: c.Expired, Lane: "unknown"}
	l, ok := lanes[name]
	if !ok {
		return status
	}
	status.Lane, status.Problem, status.Failures = laneState(l), l.Problem, l.Failures
	status.InFlight, status.Concurrency = l.InFlight, l.Limit
	if l.NextProbe > 0 {
		status.NextProbe = instant(time.Now().Add(l.NextProbe))
	}
	return status
}
