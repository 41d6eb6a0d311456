package filter_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// A subscription with as many groups as one may have, for some topics, is not asked about an event that no group fits.
func TestGroupsOfSeveralTopicsAreFoundByTheIndex(t *testing.T) {
	t.Parallel()
	topics := []string{"orders", "returns", "invoices"}
	var f filter.Filter
	for i := range 256 {
		f.Any = append(f.Any, filter.Filter{Topics: topics[i%3 : i%3+1], Attributes: map[string]string{"region": fmt.Sprint("r", i)}})
	}
	var x filter.Index
	if err := x.Set("a", topics, f); err != nil {
		t.Fatal(err)
	}
	event := func(region string) *filter.Event {
		return &filter.Event{Topic: "orders", Attributes: map[string]string{"region": region}}
	}
	if got := x.Asked(event("none")); got > 0 {
		t.Errorf("asked %d about an event that no group fits", got)
	}
	for region, want := range map[string]int{"r0": 1, "r1": 0, "r255": 1} {
		if got := x.Match(event(region)); len(got) != want {
			t.Errorf("%s: %v", region, got)
		}
	}
}
