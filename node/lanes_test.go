package node_test

import (
	"context"
	"slices"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/notify"
)

// Before the dispatcher runs a node tells of no lane: some alone would say that nobody
// delivers to a destination, and a request that waits for its outcome would be
// answered without one. Then it tells of destinations and of channels.
func TestNobodyIsToldOfLanesBeforeTheDispatcherRuns(t *testing.T) {
	t.Parallel()
	n, err := node.Build(t.Context(), parse(t, `destinations: {call: {call: {url: "http://127.0.0.1:1"}}}`), &lockedBuffer{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- n.RunChannels(ctx) }()
	if lanes := n.Lanes(); lanes != nil {
		t.Errorf("before the dispatcher runs: got %+v, want none", lanes)
	}
	go func() { ended <- n.RunDispatcher(ctx) }()
	for _, name := range []string{"call", notify.Lane("")} {
		waittest.Until(t, "the node tells of "+name, func() bool {
			return slices.ContainsFunc(n.Lanes(), func(l holdfast.LaneStatus) bool { return l.Destination == name })
		})
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
