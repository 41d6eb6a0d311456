package sqlite_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// outbox-peers 14: many goroutines of two processes enqueue, claim, settle,
// process, read and clean up on one file, and nobody is told that it is busy.
func TestNobodyMeetsBusy(t *testing.T) {
	t.Parallel()
	eachHandle(t, func(t *testing.T, h handle) {
		t.Helper()
		owner, other := pair(t, h)
		defer other.shut(t)
		defer owner.shut(t)
		const rounds = 40
		var all sync.WaitGroup
		for n, a := range []*app{owner, other, owner, other} {
			all.Go(func() {
				for i := range rounds {
					if err := useAll(t.Context(), a, fmt.Sprintf("%d-%d", n, i)); err != nil {
						t.Errorf("round %d of goroutine %d: %v", i, n, err)
						return
					}
				}
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var settling sync.WaitGroup
		settling.Go(func() {
			for ctx.Err() == nil {
				if err := settleSome(t.Context(), owner); err != nil {
					t.Errorf("claim and settle: %v", err)
					return
				}
			}
		})
		all.Wait()
		waittest.Until(t, "no message is left", func() bool { return onDisk(t, owner.DB, 0) == 0 }) // its counters learn of the other's within lookEvery
		cancel()
		settling.Wait()
		rows, err := owner.SQL(t.Context(), "SELECT count(*), sum(state = 2) FROM hf_message")
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(4 * 3 * rounds); rows[0][0] != want || rows[0][1] != want {
			t.Errorf("%v messages, %v delivered, want %d", rows[0][0], rows[0][1], want)
		}
		audit(t, owner.DB)
	})
}

// useAll does one of each thing that a program does.
func useAll(ctx context.Context, a *app, id string) error {
	if _, err := a.Enqueue(ctx, message(holdfast.ID("e-"+id))); err != nil {
		return err
	}
	if err := a.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.Enqueue(ctx, message(holdfast.ID("d-"+id)))
		return err
	}); err != nil {
		return err
	}
	m := holdfast.Message{ID: holdfast.ID("p-" + id), Source: "web", Endpoint: "E"}
	if _, err := a.Inbox().Process(ctx, m, func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
		_, err := tx.Enqueue(ctx, message("of-"+m.ID))
		return nil, err
	}); err != nil {
		return err
	}
	if _, err := a.Get(ctx, holdfast.ID("e-"+id)); err != nil {
		return err
	}
	if _, err := a.List(ctx, holdfast.Query{}); err != nil {
		return err
	}
	_, _, err := a.Purge(ctx, holdfast.Retention{Delivered: time.Hour})
	return err
}

func settleSome(ctx context.Context, a *app) error {
	b, err := a.Claim(ctx, map[string]int{"a": 20})
	if err != nil {
		return err
	}
	if len(b.Claims) == 0 {
		time.Sleep(time.Millisecond)
		return nil
	}
	list := make([]holdfast.Settlement, len(b.Claims))
	for i, c := range b.Claims {
		list[i] = settlement(c, holdfast.Delivered)
	}
	_, err = a.Settle(ctx, list...)
	return err
}
