package holdfast_test

import (
	"context"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// F1-99: which states a dispatcher leaves alone.
func TestFinalStates(t *testing.T) {
	t.Parallel()
	for state, want := range map[holdfast.State]bool{
		holdfast.Pending: false, holdfast.Claimed: false, holdfast.Delivered: true, holdfast.Parked: true, holdfast.Expired: true, holdfast.Discarded: true,
	} {
		if state.Final() != want {
			t.Errorf("%s: final %t, want %t", state, !want, want)
		}
	}
}

// F1-99, OI-10: whose id may have been forgotten, and for how long one is kept.
func TestWhatAnInboxMayHaveForgotten(t *testing.T) {
	t.Parallel()
	const week, longest = 7 * 24 * time.Hour, holdfast.LongestMemory
	for name, c := range map[string]struct {
		a         holdfast.Attempt
		forgotten bool
		memory    time.Duration
	}{
		"within the retention":       {holdfast.Attempt{Cycle: 1, RetryFor: -1, FirstAgo: week}, false, week},
		"later, and no end was told": {holdfast.Attempt{Cycle: 1, RetryFor: -1, FirstAgo: week + 1}, true, week},
		"later, as it was told":      {holdfast.Attempt{Cycle: 1, RetryFor: 0, FirstAgo: week + 1}, false, week},
		"later, in a second cycle":   {holdfast.Attempt{Cycle: 2, RetryFor: time.Hour, FirstAgo: week + 1}, true, week},
		"by order of a person":       {holdfast.Attempt{Cycle: 2, RetryFor: time.Hour, FirstAgo: week + 1, Forced: true}, false, week},
		"as late as can be":          {holdfast.Attempt{Cycle: 1, RetryFor: 2 * longest, FirstAgo: longest}, false, longest},
		"later than any id is kept":  {holdfast.Attempt{Cycle: 1, RetryFor: longest, FirstAgo: longest + 1}, true, longest},
	} {
		if got := c.a.Forgotten(week); got != c.forgotten {
			t.Errorf("%s: forgotten %t, want %t", name, got, c.forgotten)
		}
		if got := c.a.Memory(week); got != c.memory {
			t.Errorf("%s: kept for %s, want %s", name, got, c.memory)
		}
	}
}

// F1-99: what comes in has an id, a source and a kind, and a payload that is not
// nil.
func TestWhatComesInIsNormal(t *testing.T) {
	t.Parallel()
	m := holdfast.Message{ID: "URN:UUID:01A21F5D-BD83-7EFA-BD3F-39EAF909A3D3", Source: "shop"}
	if err := holdfast.NormalizeIncoming(&m); err != nil {
		t.Fatal(err)
	}
	want := holdfast.Message{ID: "01a21f5d-bd83-7efa-bd3f-39eaf909a3d3", Source: "shop", Kind: holdfast.Signal, Payload: []byte{}}
	if diff := cmp.Diff(m, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	call := holdfast.Message{ID: "a", Source: "shop", Kind: holdfast.Command}
	if err := holdfast.NormalizeIncoming(&call); err != nil || call.Kind != holdfast.Command {
		t.Errorf("a command became a %s, %v", call.Kind, err)
	}
	for name, m := range map[string]holdfast.Message{"no id": {Source: "shop"}, "no source": {ID: "a"}} {
		if err := holdfast.NormalizeIncoming(&m); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// F1-99: stores keep the hash of a content: it is the same in each version, and no
// boundary between its parts can move.
func TestTheHashOfAContentStays(t *testing.T) {
	t.Parallel()
	hash := func(endpoint, payload string) string {
		m := holdfast.Message{Kind: holdfast.Signal, Endpoint: endpoint, Payload: []byte(payload)}
		return hex.EncodeToString(m.ContentHash())
	}
	const want = "36792c7690c16bb41ef8d8786ef2f34bc2c61c78688fa870a912c23c391a35fb"
	if got := hash("Book", "{}"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if hash("Boo", "k{}") == want {
		t.Error("two contents of one hash")
	}
}

// F1-99: how a receiver tells what its store could not do.
func TestFailuresOfAReceiver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want holdfast.Failure
	}{
		{errors.New("x"), holdfast.Failure{Code: "handler_error"}},
		{holdfast.ErrConflict, holdfast.Failure{Outcome: holdfast.Permanent, Code: "conflict", Reason: holdfast.ReasonConflict}},
		{holdfast.ErrTooOld, holdfast.Failure{Outcome: holdfast.Permanent, Code: "too_old", Reason: holdfast.ReasonTooOld}},
		{holdfast.ErrInvalid, holdfast.Failure{Outcome: holdfast.Permanent, Code: "invalid_message"}},
		{holdfast.ErrDiskFull, holdfast.Failure{Code: "disk_full"}},
		{holdfast.ErrUnavailable, holdfast.Failure{Code: "unavailable", RetryAfter: 5 * time.Second}},
		{holdfast.ErrUnknown, holdfast.Failure{Code: "unknown", RetryAfter: 5 * time.Second, MaybeDelivered: true}}, // F1-128
		{holdfast.ErrClosed, holdfast.Failure{Code: "stopping"}},
		{context.DeadlineExceeded, holdfast.Failure{Code: "timeout"}},
		{context.Canceled, holdfast.Failure{Code: "timeout"}},
	} {
		f := *holdfast.AsFailure(holdfast.ReceiveFailure(c.err))
		f.Err = nil
		if diff := cmp.Diff(f, c.want); diff != "" {
			t.Errorf("%v (-got +want):\n%s", c.err, diff)
		}
	}
	if err := holdfast.ReceiveFailure(nil); err != nil {
		t.Errorf("nothing failed, and it says %v", err)
	}
}

// F1-99: an endpoint that does not answer has sixteen calls at once, and 48 wait;
// the next one is not begun and comes again in a second.
func TestABusyEndpointTurnsAway(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		free := make(chan struct{})
		var calls atomic.Int64
		e := &holdfast.Endpoints{Log: db, Map: map[string]holdfast.Endpoint{"Book": {Forward: holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			calls.Add(1)
			<-free
			return holdfast.Receipt{ID: m.ID}, nil
		})}}}
		done := make(chan error, 64)
		for n := range 64 {
			go func() {
				_, err := e.Receive(t.Context(), arriving("m-"+string(rune('0'+n)), "Book"))
				done <- err
			}()
			synctest.Wait()
		}
		if n := calls.Load(); n != 16 {
			t.Errorf("%d calls at once, want 16", n)
		}
		_, err := e.Receive(t.Context(), arriving("one-more", "Book"))
		if f := holdfast.AsFailure(err); err == nil || f.Outcome != holdfast.NotStarted || f.Code != "endpoint_busy" || f.RetryAfter != time.Second {
			t.Errorf("got %v, want it turned away for a second", err)
		}
		close(free)
		for range 64 {
			if err := <-done; err != nil {
				t.Errorf("one that waited: %v", err)
			}
		}
	})
}

// F1-99, OI-10: a receiver is told until when the sender tries: the rest of the
// TTL and one attempt; without a TTL no end is told.
func TestTheReceiverIsToldWhenTheSenderStops(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{}
		enqueue(t, db, holdfast.Message{ID: "ends", Destination: "a", TTL: time.Hour}, holdfast.Message{ID: "endless", Destination: "a"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Timeout: time.Minute}}})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, tried := range to.tries() {
			got := tried.attempt.RetryFor
			if tried.id == "ends" && (got <= time.Hour || got > time.Hour+time.Minute) || tried.id == "endless" && got >= 0 {
				t.Errorf("%s: the sender says that it stops in %s", tried.id, got)
			}
		}
		if n := len(to.tries()); n != 2 {
			t.Errorf("%d attempts, want 2", n)
		}
	})
}
