package transporttest_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
)

func to(r holdfast.Receiver) holdfast.Deliverer { return holdfast.DelivererFunc(r.Receive) }

func TestEachFaultDoesWhatItSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault            transporttest.Fault
		arrived, flushed int
		acked            bool
		batchArrived     int // of 4
		batchAcked       int
	}{
		"none":         {transporttest.NoFault, 1, 1, true, 4, 4},
		"lost request": {transporttest.LoseRequest, 0, 0, false, 0, 0},
		"lost ack":     {transporttest.LoseAck, 1, 1, false, 4, 0},
		"doubled":      {transporttest.Double, 2, 2, true, 8, 4},
		"late":         {transporttest.Late, 0, 1, false, 0, 0},
		"cut":          {transporttest.Cut, 1, 1, false, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &transporttest.Recorder{}
			f := &transporttest.Faulty{To: to(r), Plan: transporttest.Script(c.fault)}
			_, err := f.Deliver(t.Context(), transporttest.Message())
			if got := len(r.Got()); got != c.arrived || (err == nil) != c.acked {
				t.Errorf("got %d arrived, %v; want %d, acknowledged %v", got, err, c.arrived, c.acked)
			}
			f.Flush(t.Context())
			if got := len(r.Got()); got != c.flushed {
				t.Errorf("after Flush: got %d arrived, want %d", got, c.flushed)
			}
			if _, err := f.Deliver(t.Context(), transporttest.Message()); err != nil {
				t.Errorf("after the script: %v", err)
			}

			r = &transporttest.Recorder{}
			f = &transporttest.Faulty{To: to(r), Plan: transporttest.Script(c.fault)}
			ms := []holdfast.Message{transporttest.Message(), transporttest.Message(), transporttest.Message(), transporttest.Message()}
			acked := 0
			results := f.DeliverBatch(t.Context(), ms)
			for _, result := range results {
				if result.Err == nil {
					acked++
				}
			}
			if got := len(r.Got()); got != c.batchArrived || acked != c.batchAcked || len(results) != len(ms) {
				t.Errorf("batch: got %d arrived, %d of %d acknowledged; want %d, %d of 4", got, acked, len(results), c.batchArrived, c.batchAcked)
			}
		})
	}
}

func TestLateMessagesComeBehindTheNext(t *testing.T) {
	t.Parallel()
	r := &transporttest.Recorder{}
	f := &transporttest.Faulty{To: to(r), Plan: transporttest.Script(transporttest.Late)}
	first, second := transporttest.Message(), transporttest.Message()
	f.Deliver(context.Background(), first)  //nolint:errcheck // it is late
	f.Deliver(context.Background(), second) //nolint:errcheck // only the order counts
	var got []holdfast.ID
	for _, m := range r.Got() {
		got = append(got, m.ID)
	}
	if diff := cmp.Diff([]holdfast.ID{second.ID, first.ID}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheSameSeedIsTheSamePlan(t *testing.T) {
	t.Parallel()
	a, b, other := transporttest.Seeded(1, 0.5), transporttest.Seeded(1, 0.5), transporttest.Seeded(2, 0.5)
	faults, differs := 0, false
	for n := range 1000 {
		if a(n) != b(n) {
			t.Fatalf("call %d: got %d and %d", n, a(n), b(n))
		}
		if a(n) != transporttest.NoFault {
			faults++
		}
		differs = differs || a(n) != other(n)
	}
	if faults < 400 || faults > 600 || !differs {
		t.Errorf("got %d faults of 1000 at a share of a half, another seed differs: %v", faults, differs)
	}
}
