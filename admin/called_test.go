package admin_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// hangingLog takes nothing until the caller gives up.
type hangingLog struct{ asked int }

func (h *hangingLog) Append(ctx context.Context, _ ...holdfast.Entry) error {
	h.asked++
	<-ctx.Done()
	return ctx.Err()
}

// A journal that hangs holds an answer up for 2 s, and a caller that has gone away does not
// keep its call out of the journal.
func TestAnAnswerWaitsForTheJournalForAMoment(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		log := &hangingLog{}
		s := &admin.Service{Calls: log}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := s.Called(ctx, "retryMessage", "m", nil); err == nil {
			t.Error("the caller is not told that there is no entry")
		}
		if took := time.Since(began); took != 2*time.Second || log.asked != 1 {
			t.Errorf("asked %d times for %v, want once for 2 s", log.asked, took)
		}
	})
}
