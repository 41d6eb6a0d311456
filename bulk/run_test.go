package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/bulk"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// rig is a store with one action, and what was done to each of its rows.
type rig struct {
	*testing.T
	store *nodestore.Bulks
	id    string

	mu   sync.Mutex
	did  map[string]int
	fail func(item string) error
}

func (r *rig) do(_ context.Context, _ *bulk.Action, item string) (refusal string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(item); err != nil {
			return "", err
		}
	}
	if r.did[item]++; r.did[item] > 1 {
		return "it is done already", nil // as the state of a message says
	}
	return "", nil
}

// run runs a node for a while of virtual time.
func (r *rig) run(d time.Duration) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), d)
	defer cancel()
	if err := (&bulk.Runner{Store: r.store, Do: r.do, Holder: "node", Logger: slog.New(slog.DiscardHandler)}).Run(ctx); err != nil {
		r.Error(err)
	}
}

func (r *rig) action() bulk.Action {
	r.Helper()
	a, err := r.store.Bulk(r.Context(), r.id)
	if err != nil {
		r.Fatal(err)
	}
	return a
}

func (r *rig) is(state bulk.State, done, refused int64) {
	r.Helper()
	if a := r.action(); a.State != state || a.Done != done || a.Refused != refused {
		r.Errorf("got %s, %d done, %d refused; want %s, %d, %d", a.State, a.Done, a.Refused, state, done, refused)
	}
}

func inVirtualTime(t *testing.T, rate int64, rows int, test func(r *rig)) {
	t.Helper()
	racetest.Bubble(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		r := &rig{T: t, store: nodestore.New(db, nil).Bulks, id: string(holdfast.NewID()), did: map[string]int{}}
		var items []string
		for i := range rows {
			items = append(items, fmt.Sprint(i))
		}
		if err := errors.Join(
			r.store.AddBulk(t.Context(), &bulk.Action{ID: r.id, Rate: rate}),
			r.store.GatherBulk(t.Context(), r.id, 0, items),
			r.store.MoveBulk(t.Context(), r.id, bulk.Running, bulk.Gathering),
		); err != nil {
			t.Fatal(err)
		}
		test(r)
		for item, n := range r.did {
			if n > 2 {
				t.Errorf("row %s was done %d times", item, n)
			}
		}
	})
}

// An action goes on at once after its node was stopped, at its rate, and ends by itself.
func TestAnActionGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, 10, 100, func(r *rig) {
		r.run(4500 * time.Millisecond)
		if a := r.action(); a.State != bulk.Running || a.Done < 40 || a.Done > 50 {
			r.Errorf("after 4.5 s at 10 a second: %+v", a)
		}
		r.run(7 * time.Second)
		r.is(bulk.Done, 100, 0)
		if len(r.did) != 100 {
			r.Errorf("%d rows were done", len(r.did))
		}
	})
}

// A row that fails for the node's sake is done again, and no row before it.
func TestARowIsDoneAgainWhenTheStoreWasAway(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, 0, 60, func(r *rig) {
		away := 3
		r.fail = func(item string) error {
			if item == "30" && away > 0 {
				away--
				return holdfast.ErrUnavailable
			}
			return nil
		}
		r.run(time.Minute)
		r.is(bulk.Done, 60, 0)
	})
}

// If a node dies between a row and its record, the row is done again, and its state refuses it.
func TestARowThatWasDoneBeforeACrashIsRefused(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, 0, 5, func(r *rig) {
		r.did["0"], r.did["1"] = 1, 1 // by a node whose record was lost
		if _, _, err := r.store.ClaimBulk(r.Context(), "dead", 30*time.Second, ""); err != nil {
			r.Fatal(err)
		}
		r.run(20 * time.Second)
		r.is(bulk.Running, 0, 0)
		r.run(time.Minute)
		r.is(bulk.Done, 3, 2)
		rows, err := r.store.BulkRows(r.Context(), r.id, 0, 2)
		if d := cmp.Diff(rows, []bulk.Row{{Seq: 1, Item: "0", Outcome: bulk.Refused, Detail: "it is done already"}, {Seq: 2, Item: "1", Outcome: bulk.Refused, Detail: "it is done already"}}); d != "" || err != nil {
			r.Errorf("%v (-got +want):\n%s", err, d)
		}
	})
}

// A paused action waits, and a cancelled one leaves the rest.
func TestPauseAndCancel(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, 1, 10, func(r *rig) {
		r.run(2500 * time.Millisecond)
		if err := r.store.MoveBulk(r.Context(), r.id, bulk.Paused, bulk.Running); err != nil {
			r.Fatal(err)
		}
		r.run(time.Minute)
		r.is(bulk.Paused, 3, 0)
		if err := r.store.MoveBulk(r.Context(), r.id, bulk.Running, bulk.Paused); err != nil {
			r.Fatal(err)
		}
		r.run(1500 * time.Millisecond)
		if err := r.store.MoveBulk(r.Context(), r.id, bulk.Cancelled, bulk.Running); err != nil {
			r.Fatal(err)
		}
		r.run(time.Minute)
		r.is(bulk.Cancelled, 5, 0)
	})
}

// An urgent action does not wait for a slow one, nor for one with a row that always fails: that is refused in
// the end.
func TestActionsTakeTurns(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, 1, 100, func(r *rig) {
		slow := r.id
		r.fail = func(item string) error {
			if item == "3" {
				return errors.New("damaged")
			}
			return nil
		}
		r.run(10 * time.Second)
		r.id = string(holdfast.NewID())
		if err := errors.Join(
			r.store.AddBulk(r.Context(), &bulk.Action{ID: r.id}),
			r.store.GatherBulk(r.Context(), r.id, 0, []string{"urgent"}),
			r.store.MoveBulk(r.Context(), r.id, bulk.Running, bulk.Gathering),
		); err != nil {
			r.Fatal(err)
		}
		r.run(2 * time.Second)
		r.is(bulk.Done, 1, 0)
		r.id = slow
		r.run(time.Hour)
		r.is(bulk.Done, 99, 1)
	})
}
