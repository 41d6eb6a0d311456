package sqlite_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// What a person decides about between a purge's look and its deletion stays
// (F1-99).
func TestAPurgeSparesWhatWasDecidedMeanwhile(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := fresh(t, virtual())
		defer shut(t, db)
		ids := []holdfast.ID{"again", "given-up", "old"}
		for _, id := range ids {
			enqueue(t, db, message(id))
		}
		for _, c := range claim(t, db, len(ids)) {
			s := settlement(c, holdfast.Parked)
			s.Reason = holdfast.ReasonPermanent
			if _, err := db.Settle(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		enqueue(t, db, message("newest"))
		time.Sleep(2 * time.Hour)
		// A handler holds the writer, so that each waits for its turn and the purge
		// has seen what none of the others has done yet.
		free := make(chan struct{})
		busy := errors.New("undone")
		var all sync.WaitGroup
		turn := func(do func() error) {
			all.Go(func() {
				if err := do(); err != nil && !errors.Is(err, busy) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		turn(func() error {
			_, err := db.Process(t.Context(), holdfast.Message{ID: "i", Source: "s", Endpoint: "E"}, time.Hour,
				func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) {
					<-free
					return nil, busy
				})
			return err
		})
		turn(func() error { _, err := db.Requeue(t.Context(), ids[0], holdfast.Requeue{}); return err })
		turn(func() error { _, err := db.Discard(t.Context(), ids[1], "anna"); return err })
		purged := 0
		turn(func() error {
			var err error
			purged, _, err = db.Purge(t.Context(), holdfast.Retention{Parked: time.Hour, Discarded: time.Hour})
			return err
		})
		close(free)
		all.Wait()
		if purged != 1 {
			t.Errorf("%d purged, want the one that nobody touched", purged)
		}
		for i, want := range []holdfast.State{holdfast.Pending, holdfast.Discarded} {
			if r, err := db.Get(t.Context(), ids[i]); err != nil || r.State != want {
				t.Errorf("message %s: %v, %v; want it %v", ids[i], r.State, err, want)
			}
		}
		audit(t, db)
	})
}
