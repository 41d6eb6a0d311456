package holdfast_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// An attempt that never returns makes room for a message that the lane holds already, also if it holds so many that it claims no more.
func TestAnAttemptThatHangsMakesRoomForWhatIsReady(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprint(own), func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				release := make(chan struct{})
				to := &script{answer: func(_ context.Context, m holdfast.Message) error {
					if m.ID == "hung" && m.Attempt.Number == 1 {
						<-release
					}
					return nil
				}}
				d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Limit: 1, Timeout: time.Second, OwnSchedule: own}}}
				enqueue(t, db, holdfast.Message{ID: "hung", Destination: "a"})
				stop := dispatch(t, d)
				synctest.Wait()
				enqueue(t, db, numbered(20, "a")...)
				time.Sleep(10 * time.Second)
				if n := to.count(); n < 20 {
					t.Errorf("%d attempts 10 s after one that hangs, which may take 1 s", n)
				}
				close(release)
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
