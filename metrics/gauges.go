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
	held := gauge("holdfast_outbox_held", "Messages whose TTL is over by a clock that is doubted: neither delivered nor ended until it is believed or put right.")
	kept := gauge("holdfast_inbox_kept", "Incoming messages that wait to be fetched.")
	oldest := gauge("holdfast_oldest_due_seconds", "For how long the oldest due message of the destination has waited: since it was due, or first tried if nothing has got anywhere since. 0: nothing is due.")
	laneUp := gauge("holdfast_lane_up", "1 while attempts at the destination succeed, 0 while it is down, held or paused.")
	lanes := gauge("holdfast_lanes", "Destinations whose lane is in this state.")
	backupAt := gauge("holdfast_backup_last_success_timestamp_seconds", "When a backup was last made, or found to be still up to date.")
	backupSize := gauge("holdfast_backup_size_bytes", "Size of the last backup.")
	wal := gauge("holdfast_wal_bytes", "Size of the store's write-ahead log. It grows while somebody reads one snapshot of the file for long.")
	diskFree := gauge("holdfast_disk_free_bytes", "Bytes that are free on the disk of the database.")
	diskReserve := gauge("holdfast_disk_reserve_bytes", "Bytes that are set aside on it, to record outcomes when it is full.")
	observeServer := serverGauges(gauge, o.Server)
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
		if o.Held != nil {
			see.ObserveInt64(held, o.Held())
		}
		if o.WAL != nil {
			see.ObserveInt64(wal, o.WAL())
		}
		for name, lane := range c.Lanes {
			to := toDestination(name)
			see.ObserveInt64(lanePending, lane.Pending, to)
			see.ObserveInt64(laneParked, lane.Parked, to)
			see.ObserveInt64(laneExpired, lane.Expired, to)
		}
		observeDisk(see, o.Disk, diskFree, diskReserve)
		observeServer(see)
		if o.Backup != nil {
			if at, size := o.Backup(); !at.IsZero() {
				see.ObserveInt64(backupAt, at.Unix())
				see.ObserveInt64(backupSize, size)
			}
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

// logLines counts what the log has lost.
func logLines(meter metric.Meter, lost func() int64) error {
	if lost == nil {
		return nil
	}
	_, err := meter.Int64ObservableCounter("holdfast_log_lines_lost",
		metric.WithDescription("Lines of the log that could not be written since the start, because nobody read them or the disk was full."),
		metric.WithInt64Callback(func(_ context.Context, see metric.Int64Observer) error {
			see.Observe(lost())
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make counter of lost lines: %w", err)
	}
	return nil
}

func observeDisk(see metric.Observer, disk func() (free, reserved int64), free, reserve metric.Int64Observable) {
	if disk == nil {
		return
	}
	left, reserved := disk()
	if left >= 0 {
		see.ObserveInt64(free, left)
	}
	see.ObserveInt64(reserve, reserved)
}

// serverGauges are shown while the server answers.
func serverGauges(gauge func(name, text string) metric.Int64ObservableGauge, server func() (Server, bool)) func(metric.Observer) {
	oldest := gauge("holdfast_postgres_oldest_transaction_seconds", "Age of the oldest open transaction on the PostgreSQL server that keeps dead rows from being removed.")
	dead := gauge("holdfast_postgres_dead_rows", "Rows of the queue's table in PostgreSQL that are dead and not removed yet. Claims slow down where there are many.")
	history := gauge("holdfast_postgres_history_unacknowledged", "1 while the PostgreSQL database has another history than the one that people know of, as after a failover or a restore: acknowledged messages may be gone.")
	nodes := gauge("holdfast_postgres_nodes", "Nodes that share the PostgreSQL database and are alive.")
	return func(see metric.Observer) {
		if server == nil {
			return
		}
		if s, answers := server(); answers {
			if s.OldestTransaction >= 0 {
				see.ObserveInt64(oldest, int64(s.OldestTransaction.Seconds()))
			}
			unacknowledged := int64(0)
			if s.Unacknowledged {
				unacknowledged = 1
			}
			see.ObserveInt64(history, unacknowledged)
			see.ObserveInt64(dead, s.DeadRows)
			see.ObserveInt64(nodes, int64(s.Nodes))
		}
	}
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
