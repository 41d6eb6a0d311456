package admin_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
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

// fullLog takes nothing while the disk is full.
type fullLog struct {
	full bool
	last holdfast.Entry
}

func (f *fullLog) Append(_ context.Context, entries ...holdfast.Entry) error {
	if f.full {
		return holdfast.ErrUnavailable
	}
	f.last = entries[len(entries)-1]
	return nil
}

// Refusals that were counted, and whose entry cannot be written, are among the calls that were missed.
func TestCountedRefusalsAreNotLostWithTheirEntry(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		log := &fullLog{}
		s := &admin.Service{Calls: log}
		refuse := func() { _ = s.Called(t.Context(), "retryMessage", "m", &api.Problem{Status: 403}) }
		for range 4 {
			refuse()
		}
		began := time.Now().UTC()
		time.Sleep(90 * time.Second)
		log.full = true
		refuse() // with the three before
		log.full = false
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.TellMissed(ctx); err != nil {
			t.Fatal(err)
		}
		var got audit.Missed
		if err := json.Unmarshal(log.last.Detail, &got); err != nil || got.Calls != 4 || !got.Since.Equal(began) {
			t.Errorf("got %+v, %v, want 4 calls since %v", got, err, began)
		}
	})
}
