package storetest

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// overdue tests the answer to how long the oldest due message of each destination has been due
// (F1-32). Rules about progress depend on it.
func overdue(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"what waits is overdue since it was due": func(k *kit) {
			k.due(nil)
			k.put(holdfast.Message{ID: "1"})
			k.pass(time.Minute)
			k.put(holdfast.Message{ID: "2"}, holdfast.Message{ID: "3", Destination: "b"})
			k.pass(time.Minute)
			k.due(map[string]time.Duration{"a": 2 * time.Minute, "b": time.Minute})
			k.wins(k.one("1"), holdfast.Settlement{State: holdfast.Delivered})
			k.due(map[string]time.Duration{"a": time.Minute, "b": time.Minute})
			k.wins(k.one("2"), holdfast.Settlement{State: holdfast.Delivered})
			k.due(map[string]time.Duration{"b": time.Minute})
		},
		"what was put off is not": func(k *kit) {
			k.put(holdfast.Message{ID: "1"})
			k.wins(k.one("1"), holdfast.Settlement{State: holdfast.Pending, RetryIn: time.Hour, Outcome: holdfast.Transient})
			k.pass(time.Minute)
			k.due(nil)
			k.pass(time.Hour)
			k.due(map[string]time.Duration{"a": time.Minute})
		},
		"what waits for its ordering key is not": func(k *kit) {
			k.put(holdfast.Message{ID: "1", OrderingKey: "k"}, holdfast.Message{ID: "2", OrderingKey: "k"})
			k.wins(k.one("1"), holdfast.Settlement{State: holdfast.Pending, RetryIn: time.Hour, Outcome: holdfast.Transient})
			k.pass(time.Minute)
			k.due(nil)
		},
		"what is over is not": func(k *kit) {
			k.park(holdfast.Message{ID: "1"})
			k.put(holdfast.Message{ID: "2"})
			k.discard("2")
			k.pass(time.Minute)
			k.due(nil)
		},
	})
}

// due compares what is overdue. Clocks never stand still, so a store may show a little less. If the
// database is the clock, real time passes as well.
func (k *kit) due(want map[string]time.Duration) {
	k.t.Helper()
	got, err := k.Overdue(k.ctx())
	k.ok(err)
	for destination, d := range got {
		if w, ok := want[destination]; !ok || d < w-time.Millisecond || d > w+30*time.Second {
			k.t.Errorf("%s is overdue by %s, want %v", destination, d, want)
		}
	}
	if len(got) != len(want) {
		k.t.Errorf("overdue: %v, want %v", got, want)
	}
}
