package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/postgres"
)

func batchOf(ids ...holdfast.ID) (ms []holdfast.Message) {
	for _, id := range ids {
		ms = append(ms, received(id))
	}
	return ms
}

// Two nodes get the same messages in batches of opposite orders: neither
// batch fails, because ids are taken in one order.
func TestBatchesOfOppositeOrders(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	nodes := []*postgres.DB{s.DB, opened(t, s.dsn, postgres.Options{})}
	const n = 20
	var ids []holdfast.ID
	for i := range n {
		ids = append(ids, holdfast.ID(fmt.Sprint("m", i)))
	}
	var runs, fresh atomic.Int32
	var all sync.WaitGroup
	for i := range 6 {
		ms := batchOf(ids...)
		if i%2 == 1 {
			slices.Reverse(ms)
		}
		all.Go(func() {
			for j, r := range nodes[i/3].ProcessBatch(t.Context(), ms, time.Hour, func(ctx context.Context, tx *postgres.Tx, m holdfast.Message) ([]byte, error) {
				runs.Add(1)
				_, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1)", m.ID[1:])
				time.Sleep(time.Millisecond)
				return []byte(m.ID), err
			}) {
				if r.Err != nil || string(r.Receipt.Response) != string(ms[j].ID) {
					t.Errorf("%+v", r)
				}
				if !r.Receipt.Duplicate {
					fresh.Add(1)
				}
			}
		})
	}
	all.Wait()
	if runs.Load() != n || fresh.Load() != n {
		t.Errorf("%d runs, %d of them said to be new, want %d", runs.Load(), fresh.Load(), n)
	}
	s.stand(t, n, 0, n)
}

// A message whose handler fails leaves its id to the next of the batch, with
// whatever content; and a batch of which all fail leaves nothing.
func TestBatchWhoseHandlersFail(t *testing.T) {
	t.Parallel()
	s := newShop(t, postgres.Options{})
	broken := errors.New("broken")
	ms := batchOf("a", "a", "a", "b", "swallowed", "c")
	ms[1].Payload, ms[1].Endpoint = []byte("other"), "Other"
	handler := func(ctx context.Context, tx *postgres.Tx, m holdfast.Message) ([]byte, error) {
		if _, err := tx.Enqueue(ctx, order("")); err != nil {
			return nil, err
		}
		switch {
		case m.ID == "swallowed":
			_, _ = tx.Exec(ctx, "SELECT 1/0")
		case string(m.Payload) == "1" && m.ID != "c":
			return nil, broken
		}
		return []byte("done " + string(m.Payload[:1])), nil
	}
	got := s.ProcessBatch(t.Context(), ms, time.Hour, handler)
	for i, want := range []error{broken, nil, holdfast.ErrConflict, broken, nil, nil} {
		if i != 4 && !errors.Is(got[i].Err, want) {
			t.Errorf("%d: %+v", i, got[i])
		}
	}
	if got[4].Err == nil {
		t.Error("a handler whose statement failed has succeeded")
	}
	s.stand(t, 0, 2, 2)
	if c := s.Counts(); c.Inbox != 2 || c.Pending != 2 {
		t.Errorf("counts %+v", c)
	}
	for i, want := range map[int]error{0: holdfast.ErrConflict, 1: nil} {
		r, err := s.Inbox().Process(t.Context(), ms[i], handler)
		if !errors.Is(err, want) || err == nil && (!r.Duplicate || string(r.Response) != "done o") {
			t.Errorf("%d: %+v, %v", i, r, err)
		}
	}
	for _, r := range s.ProcessBatch(t.Context(), batchOf("x", "y"), time.Hour, handler) {
		if !errors.Is(r.Err, broken) {
			t.Errorf("%+v", r)
		}
	}
	s.stand(t, 0, 2, 2)
	for _, r := range s.ProcessBatch(t.Context(), batchOf("x", "y"), time.Hour, func(ctx context.Context, tx *postgres.Tx, m holdfast.Message) ([]byte, error) {
		if m.ID == "y" {
			s.terminate(t, tx)
		}
		_, err := tx.Enqueue(ctx, order(""))
		return nil, err
	}) {
		if r.Err == nil {
			t.Errorf("%+v", r)
		}
	}
	s.stand(t, 0, 2, 2)
}
