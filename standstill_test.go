package holdfast_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// clocked puts before each line of a log how long after the start it came.
type clocked struct {
	journal

	began time.Time
}

func (c *clocked) Handle(ctx context.Context, r slog.Record) error {
	line := slog.NewRecord(r.Time, r.Level, fmt.Sprintf("%s: %s", time.Since(c.began), r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		line.AddAttrs(a)
		return true
	})
	return c.journal.Handle(ctx, line)
}

// Design 17, F1-33: what makes no progress is told when it is first seen, and then
// once a minute for each cause, not at each look. A lane that stands and nothing
// tells why is an error. What has a line of its own is left out.
func TestWhatMakesNoProgressIsToldOnceAMinute(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		log := &clocked{began: time.Now()}
		within := func(from, to time.Duration) bool {
			at := time.Since(log.began)
			return from <= at && at < to
		}
		late := table{"nobody": time.Hour, "anybody": time.Hour, holdfast.EndedDestination: time.Hour}
		lanes := func() []holdfast.LaneStatus {
			list := []holdfast.LaneStatus{
				{Destination: "busy", Up: true, Busy: time.Minute},
				{Destination: "failing", Up: true, Failing: time.Hour},
				{Destination: "foreign", Up: true, Owner: "process 7"},
				{Destination: "stuck 1", Up: true, Idle: time.Hour},
				{Destination: "stuck 2", Up: true, Idle: time.Hour},
				{Destination: "down"},
				{Destination: "held", Held: true},
				{Destination: "paused", Decision: holdfast.LaneDecision{Paused: true}},
			}
			moves := map[string]bool{
				"busy": within(65*time.Second, 95*time.Second), "failing": within(65*time.Second, 145*time.Second),
				"stuck 1": within(0, 25*time.Second), "stuck 2": within(0, 25*time.Second),
			}
			for i := range list {
				if moves[list[i].Destination] {
					list[i] = holdfast.LaneStatus{Destination: list[i].Destination, Up: true}
				}
			}
			return list
		}
		for _, l := range lanes() {
			late[l.Destination] = time.Hour
		}
		p := &holdfast.Progress{Store: late, Lanes: lanes, Logger: slog.New(log)}
		ctx, cancel := context.WithTimeout(t.Context(), 155*time.Second)
		defer cancel()
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
		line := func(level, at, cause, destinations string, count int) string {
			return fmt.Sprintf("%s %s: due messages make no progress cause=%s destinations=%s count=%d", level, at, cause, destinations, count)
		}
		want := []string{
			line("WARN", "0s", "busy", "busy", 1),
			line("WARN", "0s", "failing", "failing", 1),
			line("WARN", "0s", "no_route", "anybody, nobody", 2),
			line("WARN", "0s", "not_owner", "foreign", 1),
			line("ERROR", "30s", "stuck", "stuck 1, stuck 2", 2),
			line("WARN", "1m0s", "busy", "busy", 1),
			line("WARN", "1m0s", "failing", "failing", 1),
			line("WARN", "1m0s", "no_route", "anybody, nobody", 2),
			line("WARN", "1m0s", "not_owner", "foreign", 1),
			line("ERROR", "1m30s", "stuck", "stuck 1, stuck 2", 2),
			line("WARN", "2m0s", "busy", "busy", 1),
			line("WARN", "2m0s", "no_route", "anybody, nobody", 2),
			line("WARN", "2m0s", "not_owner", "foreign", 1),
			line("WARN", "2m30s", "failing", "failing", 1), // it worked for a while
			line("ERROR", "2m30s", "stuck", "stuck 1, stuck 2", 2),
		}
		if diff := cmp.Diff(log.of(""), want); diff != "" {
			t.Errorf("the log (- got, + want):\n%s", diff)
		}
	})
}
