package metrics

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-mq/holdfast"
)

// gauges are read with one callback, so that the numbers of one page belong
// together.
func gauges(meter metric.Meter, o Options) error {
	var err error
	var all []metric.Observable
	gauge := func(name, text string) metric.Int64ObservableGauge {
		g, e := meter.Int64ObservableGauge(name, metric.WithDescription(text))
		err = errors.Join(err, e)
		all = append(all, g)
		return g
	}
	pending := gauge("rf_outbox_pending_count", "Messages that wait to be sent.")
	size := gauge("rf_inbox_size", "Ids of incoming messages that are remembered.")
	lanePending := gauge("holdfast_outbox_pending", "Messages that wait to be sent, per destination.")
	laneParked := gauge("holdfast_outbox_parked", "Messages that wait for a person, per destination.")
	laneExpired := gauge("holdfast_outbox_expired", "Messages whose TTL ended and that are still kept, per destination.")
	claimed := gauge("holdfast_outbox_claimed", "Messages that are being tried.")
	kept := gauge("holdfast_inbox_kept", "Incoming messages that wait to be fetched.")
	oldest := gauge("holdfast_oldest_due_seconds", "For how long the oldest due message of the destination has waited: since it was due, or first tried if nothing has got anywhere since. 0: nothing is due.")
	laneUp := gauge("holdfast_lane_up", "1 while attempts at the destination succeed, 0 while it is down, held or paused.")
	lanes := gauge("holdfast_lanes", "Destinations whose lane is in this state.")
	build := gauge("holdfast_build_info", "Always 1; its labels say what runs.")
	if err != nil {
		return fmt.Errorf("make gauges: %w", err)
	}
	info := metric.WithAttributes(
		attribute.String("version", o.Version), attribute.String("commit", o.Commit), attribute.String("goversion", runtime.Version()))
	_, err = meter.RegisterCallback(func(_ context.Context, see metric.Observer) error {
		see.ObserveInt64(build, 1, info)
		c := o.Counts()
		see.ObserveInt64(pending, c.Pending)
		see.ObserveInt64(claimed, c.Claimed)
		see.ObserveInt64(size, c.Inbox)
		see.ObserveInt64(kept, c.Kept)
		for name, lane := range c.Lanes {
			to := toDestination(name)
			see.ObserveInt64(lanePending, lane.Pending, to)
			see.ObserveInt64(laneParked, lane.Parked, to)
			see.ObserveInt64(laneExpired, lane.Expired, to)
		}
		if o.Oldest != nil {
			for name, age := range o.Oldest() {
				see.ObserveInt64(oldest, int64(age.Seconds()), toDestination(name))
			}
		}
		if o.Lanes != nil {
			observeLanes(see, o.Lanes(), laneUp, lanes)
		}
		return nil
	}, all...)
	if err != nil {
		return fmt.Errorf("register gauges: %w", err)
	}
	return nil
}

func toDestination(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("destination", name))
}

// observeLanes counts lanes by their state.
func observeLanes(see metric.Observer, list []holdfast.LaneStatus, laneUp, lanes metric.Int64ObservableGauge) {
	states := map[string]int64{"up": 0, "down": 0, "held": 0, "paused": 0}
	for _, l := range list {
		state, up := "down", int64(0)
		switch {
		case l.Decision.Paused:
			state = "paused"
		case l.Held:
			state = "held"
		case l.Up:
			state, up = "up", 1
		}
		states[state]++
		see.ObserveInt64(laneUp, up, toDestination(l.Destination))
	}
	for state, n := range states {
		see.ObserveInt64(lanes, n, metric.WithAttributes(attribute.String("state", state)))
	}
}
