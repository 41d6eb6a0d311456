package holdfast_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// An answer that takes long to summarize delays no other message.
func TestALargeAnswerDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		ids := enqueue(t, db, holdfast.Message{Destination: "large"}, holdfast.Message{Destination: "small"})
		echo := holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			return holdfast.Receipt{Answer: []byte(m.Destination)}, nil
		})
		free := make(chan struct{})
		stop := dispatch(t, &holdfast.Dispatcher{
			Store: db, Routes: map[string]holdfast.Route{"large": {Deliverer: echo}, "small": {Deliverer: echo}},
			Summary: func(answer []byte, _ bool) string {
				if string(answer) == "large" {
					<-free
				}
				return string(answer)
			},
		})
		synctest.Wait()
		wantState(t, db, ids[1], holdfast.Delivered)
		close(free)
		synctest.Wait()
		wantState(t, db, ids[0], holdfast.Delivered)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
