package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Opening tests stops at every moment of a start: while the store opens, and in the very
// moment in which it has opened, told by the end of the context or by Close. Each ends
// soon, what was acknowledged is there, and the next start needs nobody's help. Open
// opens the same store each time, which one process has at a time.
func Opening(t *testing.T, open func(ctx context.Context) (Full, error)) {
	t.Helper()
	var usual time.Duration // for a start with its stop, once there are tables
	for range 2 {
		began := time.Now()
		s, err := open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		usual = time.Since(began)
	}
	const rounds, soon = 24, 20 * time.Second
	o := opening{sent: map[holdfast.ID]int{}}
	for n := range rounds {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), usual*time.Duration(n)/(rounds/3))
		if s, err := open(ctx); err == nil {
			o.stop(ctx, t, s, n)
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("start %d, of which the context ended, got %v", n, err)
		}
		cancel()
		if took := time.Since(began); took > soon {
			t.Errorf("start %d and its stop took %s", n, took)
		}
	}
	s, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if len(o.acknowledged) == 0 {
		t.Error("nothing was acknowledged")
	}
	for _, id := range o.acknowledged {
		r, err := s.Get(t.Context(), id)
		if err != nil || r.State != holdfast.Pending && (r.State != holdfast.Delivered || o.sent[id] == 0) {
			t.Errorf("message %s, sent %d times, is %s, %v", id, o.sent[id], r.State, err)
		}
	}
	Recount(t, s)
}

// opening is what became of the messages of all starts.
type opening struct {
	acknowledged []holdfast.ID

	mu   sync.Mutex
	sent map[holdfast.ID]int
}

// stop stops a store that has just opened, and those that use it: by the context,
// which ends about now, or by Close alone.
func (o *opening) stop(ctx context.Context, t *testing.T, s Full, n int) {
	t.Helper()
	byClose := n%3 == 0
	if byClose {
		ctx = t.Context()
	}
	d := &holdfast.Dispatcher{Store: s, Lanes: s, Routes: map[string]holdfast.Route{"a": {
		Deliverer: holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.sent[m.ID]++
			return holdfast.Receipt{}, nil
		}),
	}}}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	id := holdfast.ID(fmt.Sprint("m", n))
	switch _, err := s.Enqueue(ctx, fill([]holdfast.Message{{ID: id}})...); {
	case err == nil:
		o.acknowledged = append(o.acknowledged, id)
	case !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("message %s got %v", id, err)
	}
	if !byClose {
		<-ctx.Done()
		if err := <-ended; err != nil {
			t.Errorf("dispatcher %d got %v", n, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("close %d: %v", n, err)
	}
	if byClose {
		if err := <-ended; !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("dispatcher %d of a store that was closed got %v", n, err)
		}
	}
}
