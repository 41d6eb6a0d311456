package admin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/notify"
)

// Destinations offers the places that messages go to.
type Destinations struct{ *Service }

// Get returns one destination.
func (d Destinations) Get(ctx context.Context, name string) (api.DestinationStatus, error) {
	if !within(ctx, d.here(name)) {
		return api.DestinationStatus{}, outside("destination", name)
	}
	list := d.List(ctx).Destinations
	i := slices.IndexFunc(list, func(d api.DestinationStatus) bool { return d.Name == name })
	if i < 0 {
		return api.DestinationStatus{}, api.NotFound.Problem(fmt.Sprintf("there is no destination %s, and no message for one; GET /v1/destinations lists those there are", api.Clip(name)))
	}
	return list[i], nil
}

// Pause stops new attempts at a destination.
func (d Destinations) Pause(ctx context.Context, name string) (api.DestinationStatus, error) {
	return d.decide(ctx, name, "paused", Control.Pause)
}

// Resume ends a pause. A destination that is held or down is tried at once.
func (d Destinations) Resume(ctx context.Context, name string) (api.DestinationStatus, error) {
	return d.decide(ctx, name, "resumed", Control.Resume)
}

func (d Destinations) decide(ctx context.Context, name, done string, decide func(c Control, ctx context.Context, destination, actor string) error) (is api.DestinationStatus, err error) {
	if _, err := d.Get(ctx, name); err != nil {
		return is, err
	}
	if d.Control == nil {
		return is, api.WrongState.Problem("this node delivers nothing: nobody can pause or resume here")
	}
	if err := decide(d.Control, ctx, name, Actor(ctx)); err != nil {
		return is, d.refuse(ctx, "decide about the destination", err)
	}
	d.noted(ctx, "destination "+done+" by a person", slog.String("destination", name))
	return d.Get(ctx, name)
}

// List returns all destinations of the caller's scope, by name.
func (d Destinations) List(ctx context.Context) api.DestinationList {
	counts := d.Outbox.Counts().Lanes
	lanes := map[string]holdfast.LaneStatus{}
	if d.Lanes != nil {
		for _, l := range d.Lanes() {
			lanes[l.Destination] = l
		}
	}
	list := []api.DestinationStatus{}
	seen := map[string]bool{}
	for _, one := range d.Destinations() {
		status := statusOf(one.Name, counts[one.Name], lanes)
		status.Configured, status.Category = true, string(one.Category)
		status.TTL = "none"
		if one.TTL > 0 {
			status.TTL = formatDuration(one.TTL)
		}
		table := one.Retry.Over(holdfast.DefaultRetry()).Timetable(10)
		status.Timetable = strings.Split(strings.TrimSuffix(table, "\n"), "\n")
		list = append(list, status)
		seen[one.Name] = true
	}
	for name, c := range counts {
		if !seen[name] && c != (holdfast.LaneCounts{}) && !hasList(name) {
			list = append(list, statusOf(name, c, lanes))
		}
	}
	list = slices.DeleteFunc(list, func(one api.DestinationStatus) bool { return !within(ctx, d.here(one.Name)) })
	slices.SortFunc(list, func(a, b api.DestinationStatus) int { return cmp.Compare(a.Name, b.Name) })
	return api.DestinationList{Destinations: list}
}

// hasList reports whether a lane is shown elsewhere: GET /v1/channels and GET /v1/subscriptions list theirs.
func hasList(lane string) bool {
	return strings.HasPrefix(lane, notify.LanePrefix) || strings.HasPrefix(lane, fanout.LanePrefix)
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
