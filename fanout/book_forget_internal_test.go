package fanout

import (
	"context"
	"testing"
)

// versions is a store of some versions of subscriptions.
type versions struct {
	Store

	kept []Subscription
}

func (v *versions) Version(context.Context) (int64, error) { return 9, nil }

func (v *versions) Usual(context.Context) (Usual, error) { return Usual{}, nil }

func (v *versions) TopicsSince(context.Context, int64, int64) ([]Topic, error) { return nil, nil }

func (v *versions) SubscriptionsSince(_ context.Context, after, upTo int64, _ int) (list []Subscription, err error) {
	for _, s := range v.kept {
		if s.Version > after && s.Version <= upTo {
			list = append(list, s)
		}
	}
	return list, nil
}

// A deleted subscription is known as long as the store has it, since messages may be on their way to it; then it
// is forgotten, and its route goes.
func TestABookForgets(t *testing.T) {
	t.Parallel()
	store := &versions{kept: []Subscription{
		{ID: "purged", Version: 3, Gone: true}, {ID: "gone", Version: 4, Gone: true}, {ID: "there", Version: 5, Topics: []string{"*"}},
	}}
	b := NewBook(store, nil)
	if changed, err := b.changes(t.Context()); err != nil || len(changed) != 3 || changed["purged"] == nil {
		t.Fatalf("%v, %v", changed, err)
	}
	store.kept = store.kept[1:]
	if err := b.forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	changed, err := b.changes(t.Context())
	if s, there := changed["purged"]; err != nil || len(changed) != 1 || !there || s != nil {
		t.Errorf("changed: %v, %v", changed, err)
	}
	if len(b.all) != 2 {
		t.Errorf("it knows %v", b.all)
	}
}
