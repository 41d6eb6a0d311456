package holdfast_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// adrift has the times of decisions move at each look, as those of a store whose
// clock is put right.
type adrift struct {
	holdfast.Lanes
	by time.Duration
}

func (a *adrift) LaneDecisions(ctx context.Context) ([]holdfast.LaneDecision, error) {
	list, err := a.Lanes.LaneDecisions(ctx)
	a.by += time.Hour
	for i := range list {
		list[i].At = list[i].At.Add(a.by)
	}
	return list, err
}

// A decision to resume counts once, whatever becomes of its time.
func TestADecisionThatMovesInTimeIsNotANewOne(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		resume := func() {
			if err := db.ResumeLane(t.Context(), "a", "anna"); err != nil {
				t.Error(err)
			}
		}
		resume()
		var log bytes.Buffer
		routes := map[string]holdfast.Route{"a": {Deliverer: &script{answer: always(nil)}}}
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Lanes: &adrift{Lanes: db}, Routes: routes, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		time.Sleep(time.Minute)
		resume()
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "destination resumed by a person"); n != 1 {
			t.Errorf("%d resumes were told, want the one that came while it ran:\n%s", n, &log)
		}
	})
}
