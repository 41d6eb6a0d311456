package node_test

import (
	"context"
	"slices"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

// Before the dispatcher runs a node tells of no lane: those of the channels alone,
// which may run first, would say that nobody delivers to a destination, and a
// request that waits for its outcome would be answered without one.
func TestNobodyIsToldOfLanesBeforeTheDispatcherRuns(t *testing.T) {
	t.Parallel()
	n, err := node.Build(t.Context(), parse(t, `destinations: {call: {call: {url: "http://127.0.0.1:1"}}}`), &lockedBuffer{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- n.RunChannels(ctx) }()
	waittest.Until(t, "the channels run", func() bool { return len(n.ChannelLanes()) > 0 })
	if lanes := n.Lanes(); lanes != nil {
		t.Errorf("before the dispatcher runs: got %+v, want none", lanes)
	}
	go func() { ended <- n.RunDispatcher(ctx) }()
	waittest.Until(t, "the dispatcher runs", func() bool { return len(n.Lanes()) > 0 })
	lanes := n.Lanes()
	for _, name := range []string{"call", n.ChannelLanes()[0].Destination} {
		if !slices.ContainsFunc(lanes, func(l holdfast.LaneStatus) bool { return l.Destination == name }) {
			t.Errorf("while it runs: %s is not among %+v", name, lanes)
		}
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
