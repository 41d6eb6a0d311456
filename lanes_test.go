package holdfast_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Many lanes that would each hold a lot share the room there is: the last of
// them is served as promptly as the first.
func TestLanesShareTheRoomForClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		routes := map[string]holdfast.Route{}
		var ms []holdfast.Message
		for i := range 40 {
			name := fmt.Sprintf("lane-%02d", i)
			routes[name] = holdfast.Route{Deliverer: &script{}, Limit: 1000}
			ms = append(ms, holdfast.Message{ID: holdfast.ID(name), Destination: name})
		}
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: routes})
		synctest.Wait()
		began := time.Now()
		enqueue(t, db, ms...)
		synctest.Wait()
		for _, m := range ms {
			wantState(t, db, m.ID, holdfast.Delivered)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s of waiting", took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A peer that cannot even begin is not hammered, and its messages are neither
// charged nor lost.
func TestAPeerThatDoesNotBeginIsNotHammered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(&holdfast.Failure{Outcome: holdfast.NotStarted, Code: "not_started"})}
		ids := enqueue(t, db, numbered(10, "a")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(10 * time.Minute)
		if n := to.count(); n > 800 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		to.become(nil)
		time.Sleep(time.Minute)
		for _, id := range ids {
			if r := wantState(t, db, id, holdfast.Delivered); r.Failures != 0 || r.Tries != 1 {
				t.Errorf("%s: %d failures, %d tries; want 0 and 1", id, r.Failures, r.Tries)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
