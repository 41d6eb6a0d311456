package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-mq/holdfast"
)

// inboxBatch tests handlers that share one transaction.
func inboxBatch[T any](t *testing.T, m Maker, with Transaction[T]) {
	t.Helper()
	p := processing[T]{with}
	m.run(t, map[string]func(k *kit){
		"each handler runs once, and a duplicate in the batch gets the answer": func(k *kit) {
			p.process(k, arrived("known"), p.effect("e0", []byte("r0")))
			got := p.batch(k, func(ctx context.Context, tx T, m holdfast.Message) ([]byte, error) {
				return p.effect("e-"+m.ID, []byte(m.ID))(ctx, tx, m)
			}, "1", "known", "2", "1")
			k.ok(took(got[0], "1", false, "1"))
			k.ok(took(got[1], "known", true, "r0"))
			k.ok(took(got[2], "2", false, "2"))
			k.ok(took(got[3], "1", true, "1"))
			k.is("e-1", holdfast.Pending)
			k.is("e-2", holdfast.Pending)
			if c := k.Counts(); c.Received != 5 || c.Duplicates != 2 || c.Pending != 3 || c.Inbox != 3 {
				k.t.Errorf("counts %+v", c)
			}
		},
		"a handler's error undoes its own message only": func(k *kit) {
			broken := errors.New("broken")
			got := p.batch(k, func(ctx context.Context, tx T, m holdfast.Message) ([]byte, error) {
				if _, err := p.effect("e-"+m.ID, nil)(ctx, tx, m); err != nil {
					return nil, err
				}
				if m.ID == "2" {
					return nil, broken
				}
				return nil, nil
			}, "1", "2", "3")
			k.ok(took(got[0], "1", false, ""))
			k.fails(got[1].Err, broken)
			k.ok(took(got[2], "3", false, ""))
			_, err := k.Get(k.ctx(), "e-2")
			k.fails(err, holdfast.ErrNotFound)
			if claims := k.claim(10); len(claims) != 2 {
				k.t.Errorf("claimed %v", idsOf(claims))
			} else {
				k.winAll(claims, delivered())
			}
			k.ok(took(p.process(k, arrived("2"), p.effect("e-2", nil)), "2", false, ""))
		},
		"an entry of the journal goes with its own message only": func(k *kit) {
			l := &ledger{k: k, name: "f"}
			l.read()
			of := func(source string) holdfast.Message {
				m := arrived("x")
				m.Source = source
				return m
			}
			broken := errors.New("broken")
			got := p.with.Of(k.Full).ProcessBatch(k.ctx(), []holdfast.Message{of("good"), of("bad")}, week, func(_ context.Context, _ T, m holdfast.Message) ([]byte, error) {
				if m.Source == "bad" {
					return nil, broken
				}
				return nil, nil
			})
			k.ok(took(got[0], "x", false, ""))
			k.fails(got[1].Err, broken)
			l.read()
			l.has("x handled good")
		},
		"a conflict is the result of its message": func(k *kit) {
			p.process(k, arrived("m"), p.effect("e", nil))
			other := arrived("m")
			other.Payload = []byte("other")
			got := p.with.Of(k.Full).ProcessBatch(k.ctx(), []holdfast.Message{other, arrived("n"), {}}, week, p.effect("f", nil))
			k.fails(got[0].Err, holdfast.ErrConflict)
			k.ok(took(got[1], "n", false, ""))
			k.fails(got[2].Err, holdfast.ErrInvalid)
		},
		"a context that ends keeps nothing of the batch": func(k *kit) {
			ctx, cancel := context.WithCancel(k.ctx())
			got := p.with.Of(k.Full).ProcessBatch(ctx, []holdfast.Message{arrived("1"), arrived("2")}, week,
				func(_ context.Context, tx T, m holdfast.Message) ([]byte, error) {
					cancel()
					return p.effect("e-"+m.ID, nil)(k.ctx(), tx, m)
				})
			for _, r := range got {
				k.fails(r.Err, context.Canceled)
			}
			_, err := k.Get(k.ctx(), "e-1")
			k.fails(err, holdfast.ErrNotFound)
			k.ok(took(p.process(k, arrived("1"), p.effect("e-1", nil)), "1", false, ""))
		},
		"a panic keeps nothing of the batch and goes on up": func(k *kit) {
			func() {
				defer func() {
					if r := recover(); r != "broken" {
						k.t.Errorf("recovered %v", r)
					}
				}()
				p.batch(k, func(ctx context.Context, tx T, m holdfast.Message) ([]byte, error) {
					if m.ID == "2" {
						panic("broken")
					}
					return p.effect("e-"+m.ID, nil)(ctx, tx, m)
				}, "1", "2")
			}()
			_, err := k.Get(k.ctx(), "e-1")
			k.fails(err, holdfast.ErrNotFound)
		},
	})
}

func (p processing[T]) batch(k *kit, h holdfast.Handler[T], ids ...holdfast.ID) []holdfast.Result {
	k.t.Helper()
	ms := make([]holdfast.Message, len(ids))
	for i, id := range ids {
		ms[i] = arrived(id)
	}
	return p.with.Of(k.Full).ProcessBatch(k.ctx(), ms, week, h)
}
