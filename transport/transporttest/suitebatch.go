package transporttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// expiring is a context that ends when the test says so, with context.DeadlineExceeded: a time-out
// without a clock.
type expiring struct {
	context.Context //nolint:containedctx // it is a context
	done            chan struct{}
	once            sync.Once
}

func newExpiring(parent context.Context) *expiring {
	return &expiring{Context: context.WithoutCancel(parent), done: make(chan struct{})}
}

func (c *expiring) expire()                     { c.once.Do(func() { close(c.done) }) }
func (c *expiring) Done() <-chan struct{}       { return c.done }
func (c *expiring) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

func (c *expiring) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// stuck returns a receiver that reports that a message has come in and then waits for its release,
// or for the end of its context.
func stuck() (r *Recorder, entered <-chan struct{}, release func()) {
	in, over := make(chan struct{}, 1), make(chan struct{})
	return &Recorder{Answer: func(ctx context.Context, _ holdfast.Message) (holdfast.Receipt, error) {
		in <- struct{}{}
		select {
		case <-ctx.Done():
			return holdfast.Receipt{}, ctx.Err()
		case <-over:
			return holdfast.Receipt{}, errors.New("the test is over")
		}
	}}, in, func() { close(over) }
}

func testCancelledBefore(t *testing.T, s Suite) {
	t.Helper()
	r := &Recorder{}
	d := s.New(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.Deliver(ctx, Message())
	check(t, err, holdfast.Failure{Outcome: holdfast.NotStarted})
	if got := r.Got(); len(got) > 0 {
		t.Errorf("got %d messages, want none", len(got))
	}
}

func testCancelledMeanwhile(t *testing.T, s Suite) {
	t.Helper()
	r, entered, release := stuck()
	defer release()
	d := s.New(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-entered
		cancel()
	}()
	_, err := d.Deliver(ctx, Message())
	check(t, err, holdfast.Failure{MaybeDelivered: true})
}

func testTimeout(t *testing.T, s Suite) {
	t.Helper()
	r, entered, release := stuck()
	defer release()
	d := s.New(t, r)
	ctx := newExpiring(t.Context())
	go func() {
		<-entered
		ctx.expire()
	}()
	_, err := d.Deliver(ctx, Message())
	check(t, err, holdfast.Failure{MaybeDelivered: true})
}

func testConcurrent(t *testing.T, s Suite) {
	t.Helper()
	const senders, each = 16, 10
	b := &Inbox{}
	d := s.New(t, b)
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for n := range each {
				m := Message()
				m.Payload = fmt.Appendf(nil, `{"n": %d}`, n)
				receipt, err := d.Deliver(t.Context(), m)
				if err != nil || receipt.ID != m.ID || string(receipt.Response) != string(m.Payload) {
					t.Errorf("got %+v, %v; want an ack of %s with its payload", receipt, err, m.ID)
				}
			}
		})
	}
	all.Wait()
	if got := b.Effects(); got != senders*each {
		t.Errorf("got %d effects, want %d", got, senders*each)
	}
}

// learnBatch delivers so that d learns whether its peer takes batches.
func learnBatch(t *testing.T, d holdfast.Deliverer) (holdfast.BatchDeliverer, bool) {
	t.Helper()
	if _, err := d.Deliver(t.Context(), Message()); err != nil {
		t.Fatal(err)
	}
	b, ok := d.(holdfast.BatchDeliverer)
	return b, ok && b.BatchSize() > 1
}

// forms runs a test over a receiver of single messages and one of batches.
func forms(t *testing.T, s Suite, r holdfast.Receiver, test func(t *testing.T, d holdfast.BatchDeliverer)) {
	t.Helper()
	for name, r := range map[string]holdfast.Receiver{"one by one": r, "in batches": inBatches{Receiver: r}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, ok := learnBatch(t, s.New(t, r))
			if !ok {
				t.Skip("this transport has no batches here")
			}
			test(t, d)
		})
	}
}

func testBatch(t *testing.T, s Suite) {
	t.Helper()
	r := &Recorder{Answer: func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		switch m.Endpoint {
		case "fail":
			return holdfast.Receipt{}, errors.New("handler")
		case "conflict":
			return holdfast.Receipt{}, holdfast.ErrConflict
		case "busy":
			return holdfast.Receipt{}, &holdfast.Failure{Code: "busy", RetryAfter: time.Minute}
		case "duplicate":
			return holdfast.Receipt{ID: m.ID, Duplicate: true, Response: []byte("stored\n")}, nil
		}
		return holdfast.Receipt{ID: m.ID, Response: []byte(`"` + m.ID + `"`)}, nil
	}}
	forms(t, s, r, func(t *testing.T, d holdfast.BatchDeliverer) {
		t.Helper()
		endpoints := []string{"ok", "fail", "ok", "conflict", "busy", "duplicate"}
		ms := make([]holdfast.Message, 40*len(endpoints))
		for i := range ms {
			ms[i] = Message()
			ms[i].Endpoint = endpoints[i%len(endpoints)]
		}
		results := d.DeliverBatch(t.Context(), ms)
		if len(results) != len(ms) {
			t.Fatalf("got %d results, want %d", len(results), len(ms))
		}
		for i, result := range results {
			switch id := ms[i].ID; ms[i].Endpoint {
			case "fail":
				check(t, result.Err, holdfast.Failure{})
			case "conflict":
				check(t, result.Err, holdfast.Failure{Outcome: holdfast.Permanent, Reason: holdfast.ReasonConflict})
			case "busy":
				check(t, result.Err, holdfast.Failure{Code: "busy", RetryAfter: time.Minute})
			case "duplicate":
				diff(t, "result", holdfast.Result{Receipt: holdfast.Receipt{ID: id, State: holdfast.Delivered, Duplicate: true, Response: []byte("stored\n")}}, result)
			default:
				diff(t, "result", holdfast.Result{Receipt: holdfast.Receipt{ID: id, State: holdfast.Delivered, Response: []byte(`"` + id + `"`)}}, result)
			}
		}
	})
}

func testBatchNotJSON(t *testing.T, s Suite) {
	t.Helper()
	forms(t, s, &Recorder{}, func(t *testing.T, d holdfast.BatchDeliverer) {
		t.Helper()
		ms := []holdfast.Message{Message(), Message(), Message()}
		ms[1].Payload = []byte("hello")
		results := d.DeliverBatch(t.Context(), ms)
		if results[0].Err != nil || results[2].Err != nil {
			t.Errorf("got %v and %v, want the good messages delivered", results[0].Err, results[2].Err)
		}
		check(t, results[1].Err, holdfast.Failure{Outcome: holdfast.Permanent, Reason: holdfast.ReasonUndecodable})
	})
}

func testBatchMissing(t *testing.T, s Suite) {
	t.Helper()
	silent := inBatches{&Recorder{}, func(m holdfast.Message) bool { return m.Endpoint == "silent" }}
	d, ok := learnBatch(t, s.New(t, silent))
	if !ok {
		t.Skip("this transport has no batches")
	}
	ms := []holdfast.Message{Message(), Message(), Message()}
	ms[1].Endpoint = "silent"
	results := d.DeliverBatch(t.Context(), ms)
	if results[0].Err != nil {
		t.Errorf("got %v, want an ack", results[0].Err)
	}
	for _, result := range results[1:] {
		check(t, result.Err, holdfast.Failure{MaybeDelivered: true})
	}
}

func testFaulty(t *testing.T, s Suite) {
	t.Helper()
	b := &Inbox{}
	f := &Faulty{To: s.New(t, b), Plan: Seeded(7, 0.5)}
	const messages = 60
	for n := range messages {
		ms := []holdfast.Message{Message()}
		if n%3 == 0 {
			ms = append(ms, Message(), Message(), Message())
		}
		for _, m := range ms {
			for tries := 0; ; tries++ {
				_, err := f.Deliver(t.Context(), m)
				if err == nil {
					break
				}
				check(t, err, holdfast.Failure{MaybeDelivered: true})
				if tries == 50 {
					t.Fatalf("message %s is not through after %d tries", m.ID, tries)
				}
			}
		}
		for todo, tries := ms, 0; len(todo) > 0; tries++ {
			var failed []holdfast.Message
			for i, result := range f.DeliverBatch(t.Context(), todo) {
				if result.Err != nil {
					failed = append(failed, todo[i])
				}
			}
			todo = failed
			if tries == 50 {
				t.Fatalf("%d messages are not through after %d tries", len(todo), tries)
			}
		}
	}
	f.Flush(t.Context())
	if got, want := b.Effects(), messages+messages/3*3; got != want {
		t.Errorf("got %d effects, want %d", got, want)
	}
}
