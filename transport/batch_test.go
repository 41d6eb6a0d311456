package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

// gate stands in front of a server, as proxies do, and keeps what passes.
type gate struct {
	next  http.Handler
	judge func(contentType string, body []byte) (status int) // zero: pass

	mu    sync.Mutex
	sizes []int // of each request, in messages; 0: a single one
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	kind := r.Header.Get("Content-Type")
	n := 0
	if kind == wire.BatchType {
		frames, _ := wire.Frames(body, 10000)
		n = len(frames)
	}
	g.mu.Lock()
	g.sizes = append(g.sizes, n)
	g.mu.Unlock()
	if status := g.judge(kind, body); status != 0 {
		http.Error(w, "no", status)
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	g.next.ServeHTTP(w, r)
}

func (g *gate) passed() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]int(nil), g.sizes...)
}

// gated joins an inbox to a client through a gate; the client knows already
// that batches are taken.
func gated(t *testing.T, conf transport.ClientConfig, judge func(kind string, body []byte) int) (*transport.Client, *transporttest.Inbox, *gate) {
	t.Helper()
	inbox := &transporttest.Inbox{}
	g := &gate{next: newServer(t, transport.ServerConfig{Receiver: inbox, Insecure: true, MaxBatch: 100}), judge: judge}
	conf.URL = listen(t, g)
	client := newClient(t, conf)
	if got := client.BatchSize(); got != 1 {
		t.Errorf("got batch size %d of an unknown peer, want 1", got)
	}
	if _, err := client.Deliver(t.Context(), transporttest.Message()); err != nil {
		t.Fatal(err)
	}
	return client, inbox, g
}

func messages(n int) []holdfast.Message {
	ms := make([]holdfast.Message, n)
	for i := range ms {
		ms[i] = transporttest.Message()
	}
	return ms
}

func failures(results []holdfast.Result) map[string]int {
	n := map[string]int{}
	for _, r := range results {
		if r.Err != nil {
			f := holdfast.AsFailure(r.Err)
			n[fmt.Sprintf("%v %s", f.Outcome, f.Code)]++
		}
	}
	return n
}

func pass(string, []byte) int { return 0 }

func TestBatchesAreAsLargeAsThePeerTakes(t *testing.T) {
	t.Parallel()
	client, inbox, g := gated(t, transport.ClientConfig{}, pass)
	if got := client.BatchSize(); got != 100 {
		t.Errorf("got batch size %d, want the announced 100", got)
	}
	if diff := cmp.Diff(map[string]int{}, failures(client.DeliverBatch(t.Context(), messages(250)))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 100, 100, 50}, g.passed()); diff != "" {
		t.Errorf("got requests %v (-want +got):\n%s", g.passed(), diff)
	}
	if got := inbox.Effects(); got != 251 {
		t.Errorf("got %d effects, want 251", got)
	}
}

func TestTheClientsOwnLimitCounts(t *testing.T) {
	t.Parallel()
	client, _, g := gated(t, transport.ClientConfig{MaxBatch: 30}, pass)
	client.DeliverBatch(t.Context(), messages(70))
	single, _, _ := gated(t, transport.ClientConfig{MaxBatch: 1}, pass)
	if client.BatchSize() != 30 || single.BatchSize() != 1 {
		t.Errorf("got batch sizes %d and %d, want 30 and 1", client.BatchSize(), single.BatchSize())
	}
	if diff := cmp.Diff([]int{0, 30, 30, 10}, g.passed()); diff != "" {
		t.Errorf("got requests %v (-want +got):\n%s", g.passed(), diff)
	}
}

func TestATooLargeBatchIsHalvedAndRemembered(t *testing.T) {
	t.Parallel()
	const limit = 6000
	client, inbox, g := gated(t, transport.ClientConfig{}, func(_ string, body []byte) int {
		if len(body) > limit {
			return http.StatusRequestEntityTooLarge
		}
		return 0
	})
	ms := messages(64)
	ms[40].Payload = []byte(`"` + strings.Repeat("x", limit) + `"`)
	if diff := cmp.Diff(map[string]int{"permanent http_413": 1}, failures(client.DeliverBatch(t.Context(), ms))); diff != "" {
		t.Error(diff)
	}
	if got := inbox.Effects(); got != 64 {
		t.Errorf("got %d effects, want 64", got)
	}
	before := len(g.passed())
	client.DeliverBatch(t.Context(), messages(8))
	again := g.passed()[before:]
	if len(again) > 2 || again[0] < 4 {
		t.Errorf("got requests of %v messages after the limit was learned, want no more than needed", again)
	}
}

func TestAPeerThatKnowsNoBatchesGetsSingles(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 404, 405, 415, 422, 501} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			client, inbox, g := gated(t, transport.ClientConfig{}, func(kind string, _ []byte) int {
				if kind == wire.BatchType {
					return status
				}
				return 0
			})
			if diff := cmp.Diff(map[string]int{}, failures(client.DeliverBatch(t.Context(), messages(5)))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]int{0, 5, 0, 0, 0, 0, 0}, g.passed()); diff != "" || client.BatchSize() != 1 {
				t.Errorf("got requests %v and batch size %d, want one batch and then singles", g.passed(), client.BatchSize())
			}
			if got := inbox.Effects(); got != 6 {
				t.Errorf("got %d effects, want 6", got)
			}
		})
	}
}

// One row that a proxy does not like parks alone.
func TestOnlyTheRefusedRowParks(t *testing.T) {
	t.Parallel()
	client, inbox, _ := gated(t, transport.ClientConfig{}, func(_ string, body []byte) int {
		if strings.Contains(string(body), "poison") {
			return http.StatusBadRequest
		}
		return 0
	})
	ms := messages(5)
	ms[3].Payload = []byte(`"poison"`)
	results := client.DeliverBatch(t.Context(), ms)
	if diff := cmp.Diff(map[string]int{"permanent http_400": 1}, failures(results)); diff != "" || results[3].Err == nil {
		t.Error(diff)
	}
	if got := inbox.Effects(); got != 5 {
		t.Errorf("got %d effects, want 5", got)
	}
}

func TestWhatMeetsAllAlikeIsTheLanes(t *testing.T) {
	t.Parallel()
	refuse := false
	client, _, _ := gated(t, transport.ClientConfig{}, func(string, []byte) int {
		if refuse {
			return http.StatusBadRequest
		}
		return 0
	})
	refuse = true
	if diff := cmp.Diff(map[string]int{"lane_fault http_400": 5}, failures(client.DeliverBatch(t.Context(), messages(5)))); diff != "" {
		t.Error(diff)
	}
}

func TestOneAckDoesNotSpeakForABatch(t *testing.T) {
	t.Parallel()
	inbox := newServer(t, transport.ServerConfig{Receiver: &transporttest.Inbox{}, Insecure: true})
	client := newClient(t, transport.ClientConfig{URL: listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != wire.BatchType {
			inbox.ServeHTTP(w, r)
			return
		}
		io.WriteString(w, `{"acknowledged":true}`) //nolint:errcheck // a stub
	}))})
	ms := messages(4)
	if _, err := client.Deliver(t.Context(), ms[0]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"transient no_ack": 4}, failures(client.DeliverBatch(t.Context(), ms))); diff != "" {
		t.Error(diff)
	}
}

func TestABatchsReplyIsReadAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	ms := messages(4)
	first := newServer(t, transport.ServerConfig{Receiver: &transporttest.Inbox{}, Insecure: true})
	client := newClient(t, transport.ClientConfig{URL: listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != wire.BatchType {
			first.ServeHTTP(w, r)
			return
		}
		var body []byte
		add := func(id holdfast.ID, reply wire.Reply) {
			reply.MessageID = string(id)
			body = wire.AppendFrame(body, reply.AppendTo(nil))
		}
		add("a-stranger", wire.Reply{Acknowledged: true})
		add(holdfast.ID(strings.ToUpper(string(ms[1].ID))), wire.Reply{Acknowledged: true})
		add(ms[1].ID, wire.Reply{Error: "a second answer"})
		add(ms[0].ID, wire.Reply{Error: "no class"})
		add(ms[3].ID, wire.Reply{Acknowledged: true})
		w.Header().Set("Content-Type", wire.BatchType)
		w.Write(body[:len(body)-5]) //nolint:errcheck // a stub
	}))})
	if _, err := client.Deliver(t.Context(), ms[0]); err != nil {
		t.Fatal(err)
	}
	results := client.DeliverBatch(t.Context(), ms)
	missing := holdfast.Failure{Code: "no_result", MaybeDelivered: true}
	if results[1].Err != nil || classified(t, results[0].Err).Code != "no_ack" || classified(t, results[2].Err) != missing || classified(t, results[3].Err) != missing {
		t.Errorf("got %+v", results)
	}
}

func TestTheSameIDTwiceGoesInTwoBatches(t *testing.T) {
	t.Parallel()
	client, inbox, g := gated(t, transport.ClientConfig{}, pass)
	ms := messages(4)
	ms[2].ID = holdfast.ID(strings.ToUpper(string(ms[1].ID)))
	if diff := cmp.Diff(map[string]int{}, failures(client.DeliverBatch(t.Context(), ms))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 2, 2}, g.passed()); diff != "" || inbox.Effects() != 4 {
		t.Errorf("got requests %v and %d effects, want [0 2 2] and 4", g.passed(), inbox.Effects())
	}
}

func TestAnEndedBatchSaysWhatWasNotStarted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	batches, returned := 0, make(chan struct{})
	client, _, _ := gated(t, transport.ClientConfig{}, func(kind string, _ []byte) int {
		if kind == wire.BatchType {
			if batches++; batches == 2 {
				cancel()
				<-returned // or the answer might be faster
			}
		}
		return 0
	})
	got := failures(client.DeliverBatch(ctx, messages(300)))
	close(returned)
	if diff := cmp.Diff(map[string]int{"transient canceled": 100, "not_started canceled": 100}, got); diff != "" {
		t.Errorf("got %v (-want +got):\n%s", got, diff)
	}
}

func TestANetworkFailureIsThatOfEachMessage(t *testing.T) {
	t.Parallel()
	client, _, g := gated(t, transport.ClientConfig{}, pass)
	_ = g
	ms := messages(3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results := client.DeliverBatch(ctx, ms)
	for i, r := range results {
		if r.Receipt.ID != ms[i].ID || !errors.Is(r.Err, context.Canceled) || !strings.Contains(r.Err.Error(), string(ms[i].ID)) {
			t.Errorf("got %+v, want a failure that names %s", r, ms[i].ID)
		}
		for j, other := range results {
			if i != j && r.Err == other.Err { //nolint:errorlint // identity is meant
				t.Error("two messages share one failure")
			}
		}
	}
}

func TestOffersAreRead(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]int{
		"max=64": 64, "max=64, bytes=1000000": 64, "bytes=5, max=2,x=y": 2, "max=9999": 512, "": 1, "max=0": 1, "max=1": 1,
		"max=-5": 1, "max=many": 1, "rubbish": 1, "max=99999999999999999999": 1,
	} {
		client := newClient(t, transport.ClientConfig{URL: listen(t, answering(200, http.Header{"Rf-Batch": {header}}, `{"acknowledged":true}`))})
		if _, err := client.Deliver(t.Context(), transporttest.Message()); err != nil {
			t.Fatal(err)
		}
		if got := client.BatchSize(); got != want {
			t.Errorf("%q: got batch size %d, want %d", header, got, want)
		}
	}
}

// F1-99: only the receiver takes its offer of batches back: what stands between
// may answer without one.
func TestAnOfferIsTakenBackByTheReceiverAlone(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{200: 1, 299: 1, 300: 64, 404: 64, 502: 64} {
		var asked atomic.Int32
		client := newClient(t, transport.ClientConfig{URL: listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 {
				answering(200, http.Header{"Rf-Batch": {"max=64"}}, `{"acknowledged":true}`).ServeHTTP(w, r)
				return
			}
			answering(status, nil, "").ServeHTTP(w, r)
		}))})
		for range 2 {
			client.Deliver(t.Context(), transporttest.Message()) //nolint:errcheck // only the offer counts
		}
		if got := client.BatchSize(); got != want {
			t.Errorf("status %d without an offer: got batch size %d, want %d", status, got, want)
		}
	}
}

// F1-99: a batch is as heavy as the peer has said, and 1 MiB where it has not.
func TestBatchesAreAsHeavyAsThePeerTakes(t *testing.T) {
	t.Parallel()
	for offer, want := range map[string]int{"max=64, bytes=4194304": 4, "max=64, bytes=1400000": 2, "max=64, bytes=700000": 0, "max=64": 0} {
		g := &gate{judge: pass, next: answering(200, http.Header{"Rf-Batch": {offer}}, `{"acknowledged":true}`)}
		client := newClient(t, transport.ClientConfig{URL: listen(t, g)})
		client.Deliver(t.Context(), transporttest.Message()) //nolint:errcheck // it learns the offer
		ms := messages(4)
		for i := range ms {
			ms[i].Payload = []byte(`"` + strings.Repeat("x", 600_000) + `"`)
		}
		client.DeliverBatch(t.Context(), ms)   // the answer is not understood; the request counts
		if got := g.passed()[1]; got != want { // 0: a single message
			t.Errorf("%s: the first batch had %d messages, want %d", offer, got, want)
		}
	}
}

// F1-99: one message is no batch.
func TestOneMessageGoesAlone(t *testing.T) {
	t.Parallel()
	client, _, g := gated(t, transport.ClientConfig{}, pass)
	client.DeliverBatch(t.Context(), messages(1))
	if diff := cmp.Diff(g.passed(), []int{0, 0}); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}

// F1-99: on a line that cuts everything off a batch still has 8 KiB, in messages
// of 640 bytes at least: smaller ones would be slower, not safer.
func TestTheSlowestLineHasBatchesOfAFewMessages(t *testing.T) {
	t.Parallel()
	client, _, _ := gated(t, transport.ClientConfig{}, func(kind string, _ []byte) int {
		if kind == wire.BatchType {
			return http.StatusRequestTimeout
		}
		return 0
	})
	for range 12 {
		client.DeliverBatch(t.Context(), messages(100))
	}
	if got := client.BatchSize(); got != 11 {
		t.Errorf("got batches of %d messages, want 11", got)
	}
}

// F1-99: what a line of unknown speed takes in a usual batch has the usual time,
// and only what is larger has more.
func TestPatienceGrowsWithTheRequest(t *testing.T) {
	t.Parallel()
	const usual, first = 30 * time.Second, 16 << 10
	client := newClient(t, transport.ClientConfig{URL: "http://peer.test", Timeout: usual})
	for bytes, longer := range map[int]bool{0: false, first: false, first + 1: true, 1 << 20: true} {
		if got := client.Patience(bytes); got < usual || (got > usual) != longer {
			t.Errorf("%d bytes: %s, want more than %s: %t", bytes, got, usual, longer)
		}
	}
}

// What the line cuts off goes in smaller batches, and in larger ones again once
// they get through.
func TestBatchesFitTheLine(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusRequestTimeout, http.StatusGatewayTimeout} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var slow atomic.Bool
			slow.Store(true)
			client, _, g := gated(t, transport.ClientConfig{}, func(_ string, body []byte) int {
				if slow.Load() && len(body) > 20000 {
					return status
				}
				return 0
			})
			largest := func() (n int) {
				ms := messages(100)
				for i := range ms {
					ms[i].Payload = []byte(`"` + strings.Repeat("x", 1000) + `"`)
				}
				before := len(g.passed())
				client.DeliverBatch(t.Context(), ms)
				return slices.Max(g.passed()[before:])
			}
			if got := largest(); got < 90 {
				t.Errorf("at first: batches of %d messages, want all", got)
			}
			for range 4 {
				largest()
			}
			if got := client.BatchSize(); got > 40 {
				t.Errorf("on a slow line: batches of %d messages", got)
			}
			slow.Store(false)
			for range 4 {
				largest()
			}
			if got := largest(); got < 90 {
				t.Errorf("on a fast line: batches of %d messages, want all", got)
			}
		})
	}
}

// Several messages that are all too large say nothing about the lane.
func TestTooLargeIsNoFaultOfTheLane(t *testing.T) {
	t.Parallel()
	client, _, _ := gated(t, transport.ClientConfig{}, func(_ string, body []byte) int {
		if len(body) > 1000 {
			return http.StatusRequestEntityTooLarge
		}
		return 0
	})
	ms := messages(4)
	for i := range ms {
		ms[i].Payload = []byte(`"` + strings.Repeat("x", 2000) + `"`)
	}
	if diff := cmp.Diff(map[string]int{"permanent http_413": 4}, failures(client.DeliverBatch(t.Context(), ms))); diff != "" {
		t.Error(diff)
	}
}
