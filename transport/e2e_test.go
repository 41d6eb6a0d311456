package transport_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

// A rotation, step by step, whoever goes first: no message is refused as
// long as the two sides share a secret.
func TestSecretsRotate(t *testing.T) {
	t.Parallel()
	old, fresh := secret(t, "old-"), secret(t, "new-")
	both, flipped := []*wire.Secret{old, fresh}, []*wire.Secret{fresh, old}
	var valid atomic.Pointer[[]*wire.Secret]
	inbox := &transporttest.Inbox{}
	url := listen(t, newServer(t, transport.ServerConfig{Receiver: inbox, Peer: func(source string) (transport.Peer, bool) {
		return transport.Peer{Secrets: *valid.Load()}, source == transporttest.Source
	}}))
	valid.Store(&[]*wire.Secret{old})
	client := newClient(t, transport.ClientConfig{URL: url, Secrets: flipped}) // the sender goes first
	want := 0
	for step, secrets := range [][]*wire.Secret{{old}, both, flipped, {fresh}} {
		valid.Store(&secrets)
		for range 3 {
			if _, err := client.Deliver(t.Context(), transporttest.Message()); err != nil {
				t.Errorf("step %d: %v", step, err)
			}
			if got := failures(client.DeliverBatch(t.Context(), messages(5))); len(got) > 0 {
				t.Errorf("step %d, batch: %v", step, got)
			}
			want += 6
		}
	}
	if got := inbox.Effects(); got != want {
		t.Errorf("got %d effects, want %d", got, want)
	}
	late := newClient(t, transport.ClientConfig{URL: url, Secrets: []*wire.Secret{old}})
	_, err := late.Deliver(t.Context(), transporttest.Message())
	if got := classified(t, err); got.Outcome != holdfast.LaneFault || got.Code != transport.CodeSignature {
		t.Errorf("the old secret after its time: got %+v, want a lane fault", got)
	}
}

// F1-99: the secret that the peer took last is the first to be tried, and the
// change is said once.
func TestTheOtherSecretIsRemembered(t *testing.T) {
	t.Parallel()
	g := &gate{judge: pass, next: newServer(t, transport.ServerConfig{Receiver: &transporttest.Inbox{}})}
	var l logged
	client := newClient(t, transport.ClientConfig{URL: listen(t, g), Logger: l.logger(), Secrets: []*wire.Secret{secret(t, "x"), secret(t, "k")}})
	for n, want := range []int{2, 3, 4} { // the first one is refused, once
		if _, err := client.Deliver(t.Context(), transporttest.Message()); err != nil {
			t.Fatal(err)
		}
		if got := len(g.passed()); got != want {
			t.Errorf("after message %d: %d requests, want %d", n+1, got, want)
		}
	}
	if r := l.records(t); len(r) != 1 || r[0]["msg"] != "peer accepted another secret" {
		t.Errorf("got log %v, want one line", r)
	}
}

func TestABatchLearnsTheOtherSecret(t *testing.T) {
	t.Parallel()
	inbox := &transporttest.Inbox{}
	client := pair(t, inbox, secret(t, "x"), secret(t, "k"))
	if _, err := client.Deliver(t.Context(), transporttest.Message()); err != nil {
		t.Fatal(err)
	}
	other := pair(t, inbox, secret(t, "x"), secret(t, "y"))
	if got := failures(other.DeliverBatch(t.Context(), messages(5))); got["lane_fault signature_refused"] != 5 {
		t.Errorf("got %v, want five refused signatures", got)
	}
}

// F1-19: what one receiver got cannot be replayed at another that has the same
// secret, if the sender says whom it means.
func TestAMessageIsForOneReceiver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to    string
		names []string
		taken bool
	}{
		"not said":      {"", []string{"central-b"}, true},
		"meant":         {"central-a", []string{"node-1", "central-a"}, true},
		"another":       {"central-a", []string{"central-b"}, false},
		"without names": {"central-a", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got transporttest.Recorder
			url := listen(t, newServer(t, transport.ServerConfig{Receiver: &got, Names: c.names}))
			client := newClient(t, transport.ClientConfig{URL: url, Source: transporttest.Source, Secrets: []*wire.Secret{secret(t, "k")}, To: c.to})
			_, err := client.Deliver(t.Context(), transporttest.Message())
			if taken := err == nil && len(got.Got()) == 1; taken != c.taken {
				t.Errorf("got %v, %d messages", err, len(got.Got()))
			}
			if f := holdfast.AsFailure(err); !c.taken && (f.Outcome != holdfast.LaneFault || f.Code != transport.CodeSignature || strings.Contains(f.Error(), "central-b")) {
				t.Errorf("got %v, want a refused signature that tells nothing", f)
			}
		})
	}
}

func TestAV1PeerIsServed(t *testing.T) {
	t.Parallel()
	inbox := &transporttest.Inbox{}
	url := listen(t, newServer(t, transport.ServerConfig{
		Receiver: inbox, Peer: knows("old-service", transport.Peer{Secrets: []*wire.Secret{secret(t, "k")}, V1: true}),
	}))
	client := newClient(t, transport.ClientConfig{URL: url, Source: "old-service", Secrets: []*wire.Secret{secret(t, "k")}, V1: true})
	m := transporttest.Message()
	m.Source = "" // the client's own
	for _, duplicate := range []bool{false, true} {
		receipt, err := client.Deliver(t.Context(), m)
		if err != nil || receipt.Duplicate != duplicate {
			t.Errorf("got %+v, %v; want duplicate %v", receipt, err, duplicate)
		}
	}
	if got := failures(client.DeliverBatch(t.Context(), []holdfast.Message{m, m})); len(got) > 0 {
		t.Error(got)
	}
}

// A receiver that was away for a while gets everything once.
func TestAnOutageCostsNothing(t *testing.T) {
	t.Parallel()
	inbox := &transporttest.Inbox{}
	s := newServer(t, transport.ServerConfig{Receiver: inbox})
	cutter := &transporttest.Cutter{Plan: func(n int) transporttest.Limit {
		switch n % 4 {
		case 0:
			return transporttest.Limit{Written: 300 * n, Read: -1}
		case 1:
			return transporttest.Limit{Written: -1, Read: 100 * n}
		}
		return transporttest.Whole()
	}}
	client := newClient(t, transport.ClientConfig{URL: listen(t, s), Dial: cutter.Dial, Secrets: []*wire.Secret{secret(t, "k")}})
	faulty := &transporttest.Faulty{To: client, Plan: transporttest.Seeded(1, 0.3)}
	todo := messages(200)
	for tries := 0; len(todo) > 0; tries++ {
		var failed []holdfast.Message
		for i, r := range faulty.DeliverBatch(t.Context(), todo) {
			if r.Err == nil {
				continue
			}
			if f := classified(t, r.Err); f.Outcome == holdfast.Permanent || f.Outcome == holdfast.LaneFault {
				t.Fatalf("got %v of a bad network", r.Err)
			}
			failed = append(failed, todo[i])
		}
		todo = failed
		if tries == 100 {
			t.Fatalf("%d messages are not through", len(todo))
		}
	}
	faulty.Flush(t.Context())
	if got := inbox.Effects(); got != 200 {
		t.Errorf("got %d effects, want 200", got)
	}
}

func TestTheReceiverIsToldTheTimeThatIsLeft(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var got []string
		client := pipes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Header.Get(transport.HeaderBudget))
			w.WriteHeader(http.StatusInternalServerError)
		}), transport.ClientConfig{})
		for _, timeout := range []time.Duration{30 * time.Second, 5 * time.Second, time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			client.Deliver(ctx, transporttest.Message()) //nolint:errcheck // only the header counts
			cancel()
		}
		client.Deliver(t.Context(), transporttest.Message()) //nolint:errcheck // only the header counts
		if diff := cmp.Diff([]string{"28000", "4000", "1", ""}, got); diff != "" {
			t.Errorf("got budgets %v (-want +got):\n%s", got, diff)
		}
	})
}

func TestLocalTellsItsOwnErrors(t *testing.T) {
	t.Parallel()
	cause := errors.New("no such table")
	l := &transport.Local{Source: "me", Receiver: &transporttest.Recorder{Answer: func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		if m.Source != "me" {
			t.Errorf("got source %q, want me", m.Source)
		}
		return holdfast.Receipt{}, cause
	}}}
	m := transporttest.Message()
	m.Source = ""
	if _, err := l.Deliver(t.Context(), m); !errors.Is(err, cause) {
		t.Errorf("got %v, want it to wrap the receiver's error", err)
	}
}

// F1-99: what goes through memory arrives as it does over the network: without
// the name that the sender has for its destination, and without blanks around
// the payload.
func TestLocalHandsOverWhatTheNetworkWould(t *testing.T) {
	t.Parallel()
	r := &transporttest.Recorder{}
	m := transporttest.Message()
	m.Destination, m.Payload = "there", []byte(" {\"a\":1}\n")
	if _, err := (&transport.Local{Receiver: r, Source: "here"}).Deliver(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := r.Got(); len(got) != 1 || got[0].Destination != "" || string(got[0].Payload) != `{"a":1}` {
		t.Errorf("got %+v, want no destination and the payload alone", got)
	}
}
