package admin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

type destinationsOutput struct{ Body api.DestinationList }

// Control is what people may do to a destination; holdfast.Dispatcher does it.
type Control interface {
	Pause(ctx context.Context, destination, actor string) error
	Resume(ctx context.Context, destination, actor string) error
}

type destinationInput struct {
	Name string `path:"name" doc:"The destination's name."`
}

type destinationOutput struct{ Body api.DestinationStatus }

func (b *builder) destinations() {
	handle(b, route{
		method: http.MethodGet, path: "/v1/destinations", id: "list-destinations", tag: "destinations", role: api.Read,
		summary: "List destinations", description: "What waits for each, and how its lane fares. The numbers are kept in memory: asking costs nothing.",
	}, b.listDestinations)
	none := "There is no such destination, and no message for one."
	handle(b, route{
		method: http.MethodGet, path: "/v1/destinations/{name}", id: "get-destination", tag: "destinations", role: api.Read,
		summary: "Show a destination", description: "What waits for it, how its lane fares, and who paused or resumed it last.", problems: map[api.Sort]string{api.NotFound: none},
	}, b.getDestination)
	handle(b, route{
		method: http.MethodPost, path: "/v1/destinations/{name}/pause", id: "pause-destination", tag: "destinations", role: api.Operate,
		summary: "Pause a destination",
		description: "Nothing more is begun there, at any node of the store and over restarts, until somebody resumes it. Attempts under way end; " +
			"messages wait uncharged, and their TTL runs on. Other nodes see it within seconds. One that is paused already stays as it is.",
		problems: map[api.Sort]string{api.NotFound: none},
	}, b.pauseDestination)
	handle(b, route{
		method: http.MethodPost, path: "/v1/destinations/{name}/resume", id: "resume-destination", tag: "destinations", role: api.Operate,
		summary: "Resume a destination", description: "Ends a pause, and has a destination that is held or down tried at once.",
		problems: map[api.Sort]string{api.NotFound: none},
	}, b.resumeDestination)
}

func (s *Server) getDestination(_ context.Context, in *destinationInput) (*destinationOutput, error) {
	list := s.allDestinations()
	i := slices.IndexFunc(list, func(d api.DestinationStatus) bool { return d.Name == in.Name })
	if i < 0 {
		return nil, api.NotFound.Problem(fmt.Sprintf("there is no destination %s, and no message for one; GET /v1/destinations lists those there are", api.Clip(in.Name)))
	}
	return &destinationOutput{list[i]}, nil
}

func (s *Server) pauseDestination(ctx context.Context, in *destinationInput) (*destinationOutput, error) {
	return s.decideDestination(ctx, in, "paused", Control.Pause)
}

func (s *Server) resumeDestination(ctx context.Context, in *destinationInput) (*destinationOutput, error) {
	return s.decideDestination(ctx, in, "resumed", Control.Resume)
}

func (s *Server) decideDestination(ctx context.Context, in *destinationInput, done string, decide func(c Control, ctx context.Context, destination, actor string) error) (*destinationOutput, error) {
	if _, err := s.getDestination(ctx, in); err != nil {
		return nil, err
	}
	if s.Control == nil {
		return nil, api.WrongState.Problem("this node delivers nothing: nobody can pause or resume here")
	}
	if err := decide(s.Control, ctx, in.Name, actor(ctx)); err != nil {
		return nil, s.refuse(ctx, "decide about the destination", err)
	}
	s.noted(ctx, "destination "+done+" by a person", slog.String("destination", in.Name))
	return s.getDestination(ctx, in)
}

func (s *Server) listDestinations(context.Context, *struct{}) (*destinationsOutput, error) {
	return &destinationsOutput{api.DestinationList{Destinations: s.allDestinations()}}, nil
}

func (s *Server) allDestinations() []api.DestinationStatus {
	counts := s.Outbox.Counts().Lanes
	lanes := map[string]holdfast.LaneStatus{}
	if s.Lanes != nil {
		for _, l := range s.Lanes() {
			lanes[l.Destination] = l
		}
	}
	list := []api.DestinationStatus{}
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
	slices.SortFunc(list, func(a, b api.DestinationStatus) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func statusOf(name string, c holdfast.LaneCounts, lanes map[string]holdfast.LaneStatus) api.DestinationStatus {
	status := api.DestinationStatus{Name: name, Pending: c.Pending, Parked: c.Parked, Expired: c.Expired, Lane: "unknown"}
	l, ok := lanes[name]
	if !ok {
		return status
	}
	status.Lane, status.Problem, status.Failures = laneState(l), l.Problem, l.Failures
	status.InFlight, status.Concurrency = l.InFlight, l.Limit
	if l.Standstill != nil {
		status.OldestDue = formatDuration(l.Standstill.For.Truncate(time.Second))
	}
	if d := l.Decision; !d.At.IsZero() {
		status.DecidedBy, status.DecidedAt = d.Actor, instant(d.At)
	}
	if l.NextProbe > 0 {
		status.NextProbe = instant(time.Now().Add(l.NextProbe))
	}
	return status
}
