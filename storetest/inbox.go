package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Transaction lets the suite test the transactional inbox of a store, whatever the type of its
// transactions.
type Transaction[T any] struct {
	// Of returns the inbox of a store that Maker.Open has opened.
	Of func(s Full) holdfast.InboxStore[T]
	// Enqueue enqueues a message in a handler's transaction. The suite looks for this effect.
	Enqueue func(ctx context.Context, tx T, m holdfast.Message) error
}

// inboxStore tests that a handler has one effect per (source, id), and that its response and the id
// are committed with it.
func inboxStore[T any](t *testing.T, m Maker, with Transaction[T]) {
	t.Helper()
	p := processing[T]{with}
	m.meet(t, map[string]func(k *kit){
		// OI-07.
		"duplicates that arrive at once run the handler once": p.duplicatesAtOnce,
	})
	m.run(t, map[string]func(k *kit){
		// OI-07.
		"a handler runs once": p.once,
		"a response may be empty, or none": func(k *kit) {
			for id, response := range map[holdfast.ID][]byte{"none": nil, "empty": {}, "binary": {0, 1, 255}} {
				k.ok(took(p.process(k, arrived(id), p.effect(id, response)), id, false, string(response)))
				k.ok(took(p.process(k, arrived(id), p.never(k)), id, true, string(response)))
			}
		},
		"other content is a conflict": func(k *kit) {
			p.process(k, arrived("m"), p.effect("e", nil))
			other := arrived("m")
			other.Payload = []byte(`other`)
			k.fails(p.process(k, other, p.never(k)).Err, holdfast.ErrConflict)
		},
		"each sender has its own ids": func(k *kit) {
			p.process(k, arrived("m"), p.effect("1", nil))
			other := arrived("m")
			other.Source = "plant-8"
			k.ok(took(p.process(k, other, p.effect("2", nil)), "m", false, ""))
		},
		// OI-07.
		"a handler's error keeps nothing": func(k *kit) {
			broken := errors.New("broken")
			r := p.process(k, arrived("m"), func(ctx context.Context, tx T, m holdfast.Message) ([]byte, error) {
				if _, err := p.effect("e", nil)(ctx, tx, m); err != nil {
					return nil, err
				}
				return []byte("never"), broken
			})
			k.fails(r.Err, broken)
			_, err := k.Get(k.ctx(), "e")
			k.fails(err, holdfast.ErrNotFound)
			k.ok(took(p.process(k, arrived("m"), p.effect("e", []byte("r"))), "m", false, "r"))
			k.is("e", holdfast.Pending)
		},
		"a handler's panic keeps nothing and goes on up": func(k *kit) {
			func() {
				defer func() {
					if r := recover(); r != "broken" {
						k.t.Errorf("recovered %v", r)
					}
				}()
				p.process(k, arrived("m"), func(ctx context.Context, tx T, m holdfast.Message) ([]byte, error) {
					if _, err := p.effect("e", nil)(ctx, tx, m); err != nil {
						return nil, err
					}
					panic("broken")
				})
			}()
			k.ok(took(p.process(k, arrived("m"), p.effect("e", nil)), "m", false, ""))
		},
		"a context that ends in the handler keeps nothing": func(k *kit) {
			ctx, cancel := context.WithCancel(k.ctx())
			_, err := p.with.Of(k.Full).Process(ctx, arrived("m"), week, func(_ context.Context, tx T, m holdfast.Message) ([]byte, error) {
				response, err := p.effect("e", nil)(k.ctx(), tx, m)
				cancel()
				return response, err
			})
			k.fails(err, context.Canceled)
			_, err = k.Get(k.ctx(), "e")
			k.fails(err, holdfast.ErrNotFound)
			k.ok(took(p.process(k, arrived("m"), p.effect("e", nil)), "m", false, ""))
		},
		// OI-10; outbox case 44.
		"ids that may have been forgotten are refused": func(k *kit) {
			m := arrived("m")
			m.Attempt = holdfast.Attempt{Number: 1, Cycle: 2, FirstAgo: week + time.Hour, RetryFor: time.Hour}
			k.fails(p.process(k, m, p.never(k)).Err, holdfast.ErrTooOld)
			m.Attempt.Forced = true
			k.ok(took(p.process(k, m, p.effect("e", nil)), "m", false, ""))
		},
		"a message without an id or source is refused": func(k *kit) {
			m := arrived("m")
			m.Source = ""
			k.fails(p.process(k, m, p.never(k)).Err, holdfast.ErrInvalid)
			k.fails(p.process(k, arrived(""), p.never(k)).Err, holdfast.ErrInvalid)
		},
		"the outbox itself inside a handler is an error, not a deadlock": func(k *kit) {
			p.process(k, arrived("m"), func(ctx context.Context, _ T, _ holdfast.Message) ([]byte, error) {
				_, err := k.Enqueue(ctx, fill([]holdfast.Message{{}})...)
				k.fails(err, holdfast.ErrNested)
				_, err = p.with.Of(k.Full).Process(ctx, arrived("n"), week, p.never(k))
				k.fails(err, holdfast.ErrNested)
				_, err = k.Keep(ctx, week, arrived("n"))
				k.fails(err, holdfast.ErrNested)
				_, err = k.Claim(ctx, map[string]int{"a": 1})
				k.fails(err, holdfast.ErrNested)
				k.fails(k.ConfigureLane(ctx, "a", holdfast.LaneSettings{}), holdfast.ErrNested)
				return nil, nil
			})
		},
	})
}

func (p processing[T]) duplicatesAtOnce(k *kit) {
	var runs atomic.Int32
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			receipt, err := p.with.Of(k.Full).Process(k.ctx(), arrived("m"), week, func(ctx context.Context, tx T, m holdfast.Message) ([]byte, error) {
				runs.Add(1)
				return p.effect("e", []byte("r"))(ctx, tx, m)
			})
			if err != nil || string(receipt.Response) != "r" {
				k.t.Errorf("got %+v, %v", receipt, err)
			}
		})
	}
	callers.Wait()
	if n := runs.Load(); n != 1 {
		k.t.Errorf("the handler ran %d times", n)
	}
	if got := k.Counts(); got.Received != 8 || got.Duplicates != 7 {
		k.t.Errorf("got %d received, %d duplicates", got.Received, got.Duplicates)
	}
}

type processing[T any] struct{ with Transaction[T] }

func (p processing[T]) process(k *kit, m holdfast.Message, h holdfast.Handler[T]) holdfast.Result {
	k.t.Helper()
	receipt, err := p.with.Of(k.Full).Process(k.ctx(), m, week, h)
	return holdfast.Result{Receipt: receipt, Err: err}
}

// effect returns a handler that enqueues a message with the given id.
func (p processing[T]) effect(id holdfast.ID, response []byte) holdfast.Handler[T] {
	return func(ctx context.Context, tx T, _ holdfast.Message) ([]byte, error) {
		return response, p.with.Enqueue(ctx, tx, fill([]holdfast.Message{{ID: id}})[0])
	}
}

func (p processing[T]) never(k *kit) holdfast.Handler[T] {
	return func(context.Context, T, holdfast.Message) ([]byte, error) {
		k.t.Error("the handler ran")
		return nil, nil
	}
}

func (p processing[T]) once(k *kit) {
	m := arrived("m")
	m.Headers = map[string]string{"h": "v"}
	k.ok(took(p.process(k, m, func(ctx context.Context, tx T, got holdfast.Message) ([]byte, error) {
		equal(k, "message of the handler", got, m)
		return p.effect("e", []byte("answer"))(ctx, tx, got)
	}), "m", false, "answer"))
	k.is("e", holdfast.Pending)
	k.ok(took(p.process(k, m, p.never(k)), "m", true, "answer"))
	k.reopen()
	k.ok(took(p.process(k, m, p.never(k)), "m", true, "answer"))
	known, r := k.known(m)
	k.ok(took(r, "m", true, "answer"))
	if !known {
		k.t.Error("it is not known")
	}
	k.wins(k.one("e"), delivered())
	k.nothing()
}
