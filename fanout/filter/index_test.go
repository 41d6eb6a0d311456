package filter_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast/fanout/filter"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// Of no kind of filter and no operator does an event ask those that it does not meet: what it costs
// follows what it finds. Who goes leaves nothing behind.
func TestEventAsksOnlyWhomItConcerns(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one goroutine")
	for _, form := range strangers {
		var x filter.Index
		const n = 300
		for i := range n {
			if err := x.Set(fmt.Sprint(i), []string{"orders", "returns"}, parse(t, fmt.Sprintf(form, i+1))); err != nil {
				t.Fatal(err)
			}
		}
		if got := x.Match(order()); len(got) > 0 {
			t.Errorf("%s: matched %v", form, got)
		}
		if got := x.Asked(order()); got > 3 {
			t.Errorf("%s: %d of %d filters were asked, want none but the first", form, got, n)
		}
		if err := x.Set("who stays", []string{"*"}, filter.Filter{}); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			x.Remove(fmt.Sprint(i))
		}
		if got := x.Nodes(); got != 1 || x.Len() != 1 {
			t.Errorf("%s: %d nodes and %d subscriptions are left", form, got, x.Len())
		}
	}
}

// While subscriptions come, change and go, an event finds those that do not.
func TestMatchWhileSubscriptionsChange(t *testing.T) {
	t.Parallel()
	var x filter.Index
	populate(t, &x, 200)
	var wg sync.WaitGroup
	for worker := range 2 {
		filters := make([]filter.Filter, len(strangers))
		for i := range filters {
			filters[i] = parse(t, stranger(1000*worker+i+1))
		}
		wg.Go(func() {
			for round := range 10 {
				for i, f := range filters {
					id := fmt.Sprint("passing-", worker, i)
					if err := x.Set(id, []string{"*"}, f); err != nil {
						t.Error(err)
					}
					if round%3 == i%3 {
						x.Remove(id)
					}
				}
			}
		})
		wg.Go(func() {
			for range 100 {
				if got := x.Match(order()); len(got) != 10 {
					t.Errorf("got %v, want 10", got)
				}
			}
		})
	}
	wg.Wait()
}

// A long text that repeats itself, asked for by many that begin with each other, is read about once. It would
// take half a minute if each place visited all.
func TestLongTextIsReadOnce(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one goroutine")
	var x filter.Index
	for i := range 500 {
		part := strings.Repeat("a", i+1)
		for _, form := range []string{`{where: [{field: subject, op: contains, value: %q}]}`, `{not: {where: [{field: subject, op: contains, value: %q}]}}`} {
			for _, end := range []string{"", "b"} {
				if err := x.Set(fmt.Sprint(form[1], end, i), []string{"*"}, parse(t, fmt.Sprintf(form, part+end))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if got := x.Match(&filter.Event{Subject: strings.Repeat("a", 1<<18)}); len(got) != 1000 {
		t.Errorf("got %d, want those that ask for a alone, and those that ask for no b", len(got))
	}
}

// A filter that holds in as many ways as the index looks up is asked about no event that it does not concern.
func TestAsManyWaysAsAreLookedUp(t *testing.T) {
	t.Parallel()
	var x filter.Index
	var f filter.Filter
	for i := range filter.MaxWays {
		f.Any = append(f.Any, filter.Filter{Topics: []string{"orders"}, Attributes: map[string]string{"country": fmt.Sprint(i), "x": "*"}})
	}
	if err := x.Set("all", []string{"orders"}, f); err != nil {
		t.Fatal(err)
	}
	if n := x.Asked(order()); n != 0 {
		t.Errorf("%d filters were asked", n)
	}
}
