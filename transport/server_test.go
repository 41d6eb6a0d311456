package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

// post hands a request to h and returns its answer.
func post(tb testing.TB, h http.Handler, contentType string, body []byte, change ...func(*http.Request)) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, wire.ReceivePath, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func envelope(tb testing.TB, m holdfast.Message, s wire.Seal) []byte {
	tb.Helper()
	if s.Now.IsZero() {
		s.Now = time.Now()
	}
	data, err := wire.Encode(nil, &m, s)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// logged is a logger whose records can be read.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

func (l *logged) records(tb testing.TB) []map[string]any {
	tb.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []map[string]any
	for line := range strings.Lines(l.buf.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			tb.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestOutcomesHaveTheirStatus(t *testing.T) {
	t.Parallel()
	permanent := func(r holdfast.Reason) error { return &holdfast.Failure{Outcome: holdfast.Permanent, Reason: r} }
	for name, c := range map[string]struct {
		err        error
		status     int
		retryAfter string
	}{
		"ack":          {nil, 200, ""},
		"handler":      {errors.New("x"), 500, ""},
		"conflict":     {holdfast.ErrConflict, 409, ""},
		"no endpoint":  {permanent(holdfast.ReasonNoEndpoint), 404, ""},
		"too old":      {holdfast.ErrTooOld, 410, ""},
		"too large":    {permanent(holdfast.ReasonTooLarge), 413, ""},
		"undecodable":  {permanent(holdfast.ReasonUndecodable), 422, ""},
		"permanent":    {permanent(""), 422, ""},
		"busy":         {&holdfast.Failure{RetryAfter: 1500 * time.Millisecond}, 503, "2"},
		"disk full":    {holdfast.ErrDiskFull, 503, ""},
		"stopping":     {holdfast.ErrClosed, 503, ""},
		"not started":  {&holdfast.Failure{Outcome: holdfast.NotStarted}, 503, ""},
		"unreachable":  {&holdfast.Failure{Outcome: holdfast.Unreachable}, 503, ""},
		"a lane fault": {&holdfast.Failure{Outcome: holdfast.LaneFault}, 503, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, transport.ServerConfig{Insecure: true, Receiver: &transporttest.Recorder{
				Answer: func(context.Context, holdfast.Message) (holdfast.Receipt, error) { return holdfast.Receipt{}, c.err },
			}})
			w := post(t, s, wire.MessageType, envelope(t, transporttest.Message(), wire.Seal{}))
			if w.Code != c.status || w.Header().Get("Retry-After") != c.retryAfter || w.Header().Get(transport.HeaderBatch) == "" {
				t.Errorf("got %d, %v; want %d, Retry-After %q and an offer of batches", w.Code, w.Header(), c.status, c.retryAfter)
			}
		})
	}
}

func TestAHandlersErrorStaysHere(t *testing.T) {
	t.Parallel()
	var l logged
	s := newServer(t, transport.ServerConfig{Insecure: true, Logger: l.logger(), Receiver: &transporttest.Recorder{
		Answer: func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
			return holdfast.Receipt{}, errors.New("db.go:42: no such table")
		},
	}})
	m := transporttest.Message()
	w := post(t, s, wire.MessageType, envelope(t, m, wire.Seal{}))
	want := `{"acknowledged":false,"duplicateDetected":false,"error":"not processed; try again","outcome":"transient","code":"handler_error"}`
	if got := w.Body.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r := l.records(t)
	if len(r) != 1 || r[0]["level"] != "WARN" || r[0]["message_id"] != string(m.ID) || !strings.Contains(r[0]["error"].(string), "no such table") {
		t.Errorf("got log %v", r)
	}
}

func TestARefusedSignatureReachesNobody(t *testing.T) {
	t.Parallel()
	m := transporttest.Message()
	good := envelope(t, m, wire.Seal{Secret: secret(t, "k")})
	stranger := m
	stranger.Source = "stranger"
	for name, body := range map[string][]byte{
		"wrong secret":   envelope(t, m, wire.Seal{Secret: secret(t, "x")}),
		"unknown source": envelope(t, stranger, wire.Seal{Secret: secret(t, "k")}),
		"unsigned":       envelope(t, m, wire.Seal{}),
		"v1":             envelope(t, m, wire.Seal{Secret: secret(t, "k"), V1: true}),
		"old":            envelope(t, m, wire.Seal{Secret: secret(t, "k"), Now: time.Now().Add(-6 * time.Minute)}),
		"altered":        bytes.Replace(good, []byte("orderId"), []byte("orderID"), 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l logged
			var refused []transport.Refused
			r := &transporttest.Recorder{}
			s := newServer(t, transport.ServerConfig{
				Receiver: r, Logger: l.logger(), Refused: func(r transport.Refused) { refused = append(refused, r) },
				Peer: knows(transporttest.Source, transport.Peer{Secrets: []*wire.Secret{secret(t, "k")}}),
			})
			w := post(t, s, wire.MessageType, body)
			want := `{"acknowledged":false,"duplicateDetected":false,"error":"signature refused","outcome":"lane_fault","code":"signature_refused"}`
			if w.Code != 401 || w.Body.String() != want {
				t.Errorf("got %d %s, want 401 %s: the same for every cause", w.Code, w.Body, want)
			}
			if got := r.Got(); len(got) > 0 {
				t.Errorf("got %d messages behind a refused signature", len(got))
			}
			if len(refused) != 1 || refused[0].MessageID != string(m.ID) || refused[0].Problem == "" || !refused[0].Remote.IsValid() {
				t.Errorf("got refusals %+v, want one of %s", refused, m.ID)
			}
			rec := l.records(t)
			if len(rec) != 1 || rec[0]["level"] != "WARN" || rec[0]["msg"] != "signature refused" || rec[0]["message_id"] != string(m.ID) {
				t.Errorf("got log %v", rec)
			}
			batch := post(t, s, wire.BatchType, wire.AppendFrame(nil, body))
			if batch.Code != 401 || len(r.Got()) > 0 {
				t.Errorf("in a batch: got %d and %d messages, want 401 and none", batch.Code, len(r.Got()))
			}
		})
	}
}

func TestManyRefusalsAreSlowedDown(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var l logged
		r := &transporttest.Recorder{}
		s := newServer(t, transport.ServerConfig{Receiver: r, Logger: l.logger()})
		from := func(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }
		bodies := map[string][]byte{}
		for _, fill := range []string{"x", "k"} {
			bodies[fill] = envelope(t, transporttest.Message(), wire.Seal{Secret: secret(t, fill)})
		}
		try := func(fill, addr string) int { return post(t, s, wire.MessageType, bodies[fill], from(addr)).Code }
		got := map[int]int{}
		for range 100 {
			got[try("x", "192.0.2.1:1")]++
		}
		if diff := cmp.Diff(map[int]int{401: 20, 429: 80}, got); diff != "" {
			t.Errorf("got %v (-want +got):\n%s", got, diff)
		}
		if n := len(l.records(t)); n != 20 {
			t.Errorf("got %d log lines, want 20", n)
		}
		if got := try("k", "192.0.2.1:2"); got != 200 {
			t.Errorf("a good signature from that address: got %d, want 200", got)
		}
		if got := try("x", "192.0.2.2:1"); got != 401 {
			t.Errorf("another address: got %d, want 401", got)
		}
		for n := range 21 { // one /64 is one caller
			if got, want := try("x", "[2001:db8::"+string(rune('a'+n%6))+"]:1"), 401; n < 20 && got != want {
				t.Errorf("got %d, want %d", got, want)
			} else if n == 20 && got != 429 {
				t.Errorf("after 20 from one /64: got %d, want 429", got)
			}
		}
		time.Sleep(time.Minute)
		if got := try("x", "192.0.2.1:1"); got != 401 {
			t.Errorf("a minute later: got %d, want 401", got)
		}
		for n := range 5000 { // more addresses than are watched
			try("x", fmt.Sprintf("10.0.%d.%d:1", n/250, n%250))
		}
	})
}

func TestInsecureTakesUnsigned(t *testing.T) {
	t.Parallel()
	r := &transporttest.Recorder{}
	s := newServer(t, transport.ServerConfig{Receiver: r, Insecure: true, Destination: "here"})
	for _, seal := range []wire.Seal{{}, {Secret: secret(t, "any")}} {
		if w := post(t, s, wire.MessageType, envelope(t, transporttest.Message(), seal)); w.Code != 200 {
			t.Errorf("got %d %s, want 200", w.Code, w.Body)
		}
	}
	if got := r.Got(); len(got) != 2 || got[0].Destination != "here" {
		t.Errorf("got %+v", got)
	}
}

func TestV1OnlyFromMarkedPeers(t *testing.T) {
	t.Parallel()
	r := &transporttest.Recorder{}
	s := newServer(t, transport.ServerConfig{
		Receiver: r, Peer: knows(transporttest.Source, transport.Peer{Secrets: []*wire.Secret{secret(t, "k")}, V1: true}),
	})
	m := transporttest.Message()
	m.Attempt.Forced = true
	for _, v1 := range []bool{true, false} {
		if w := post(t, s, wire.MessageType, envelope(t, m, wire.Seal{Secret: secret(t, "k"), V1: v1})); w.Code != 200 {
			t.Errorf("v1 %v: got %d %s, want 200", v1, w.Code, w.Body)
		}
	}
	if got := r.Got(); got[0].Attempt.Forced || !got[1].Attempt.Forced {
		t.Errorf("got force %v under v1 and %v under v2, want it believed under v2 only", got[0].Attempt.Forced, got[1].Attempt.Forced)
	}
}

func TestRequestsThatAreNoMessage(t *testing.T) {
	t.Parallel()
	r := &transporttest.Recorder{}
	s := newServer(t, transport.ServerConfig{Receiver: r, Insecure: true, MaxPayload: 1000, MaxBatch: 3, MaxBatchBytes: 100_000})
	good := envelope(t, transporttest.Message(), wire.Seal{})
	frames := func(n int) (b []byte) {
		for range n {
			b = wire.AppendFrame(b, envelope(t, transporttest.Message(), wire.Seal{}))
		}
		return b
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	streamed := func(r *http.Request) { r.ContentLength = -1 }
	large := bytes.Repeat([]byte(" "), 200_000)
	for name, c := range map[string]struct {
		kind   string
		body   []byte
		change func(*http.Request)
		status int
		code   string
	}{
		"another method":         {wire.MessageType, good, func(r *http.Request) { r.Method = "PUT" }, 405, "method_not_allowed"},
		"another type":           {"text/plain", good, nil, 415, "content_type"},
		"compressed":             {wire.MessageType, good, header("Content-Encoding", "gzip"), 415, "content_encoding"},
		"nothing":                {wire.MessageType, nil, nil, 400, "bad_envelope"},
		"no JSON":                {wire.MessageType, []byte("hello"), nil, 400, "bad_envelope"},
		"another version":        {wire.MessageType, bytes.Replace(good, []byte(`"2.0"`), []byte(`"3.0"`), 1), nil, 426, "unsupported_version"},
		"too large":              {wire.MessageType, large, nil, 413, "too_large"},
		"too large, streamed":    {wire.MessageType, large, streamed, 413, "too_large"},
		"a batch of nothing":     {wire.BatchType, nil, nil, 400, "bad_envelope"},
		"a damaged batch":        {wire.BatchType, append(frames(2), "x"...), nil, 400, "bad_envelope"},
		"too many in a batch":    {wire.BatchType, frames(4), nil, 413, "too_large"},
		"too large a batch":      {wire.BatchType, large, nil, 413, "too_large"},
		"cut off":                {wire.MessageType, good, func(r *http.Request) { r.Body = io.NopCloser(&halfReader{good}) }, 408, "body_cut"},
		"cut off and streamed":   {wire.MessageType, good, func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(&halfReader{good}), -1 }, 408, "body_cut"},
		"one message as a batch": {wire.BatchType, good, nil, 400, "bad_envelope"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := c.change
			if change == nil {
				change = func(*http.Request) {}
			}
			w := post(t, s, c.kind, c.body, change)
			var d wire.Decoder
			reply, err := d.DecodeReply(w.Body.Bytes())
			if w.Code != c.status || err != nil || reply.Code != c.code || reply.Acknowledged || w.Header().Get(transport.HeaderBatch) == "" {
				t.Errorf("got %d %+v %v, want %d with code %s", w.Code, reply, err, c.status, c.code)
			}
			// What meets every message alike is the lane's: a wrong method, type or version parks nothing.
			if lane := c.status == 405 || c.status == 415 || c.status == 426; lane != (reply.Outcome == holdfast.LaneFault.String()) {
				t.Errorf("got outcome %q with status %d", reply.Outcome, c.status)
			}
			if allow := w.Header().Get("Allow"); (allow == http.MethodPost) != (c.status == 405) || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("got Allow %q, Cache-Control %q; want POST with 405 alone, and no-store", allow, w.Header().Get("Cache-Control"))
			}
			if got := r.Got(); len(got) > 0 {
				t.Errorf("got %d messages, want none", len(got))
			}
		})
	}
}

// F1-99: what is exactly as large as the limit is taken.
func TestALimitIsTheLastThatIsTaken(t *testing.T) {
	t.Parallel()
	const payload = 1000
	s := newServer(t, transport.ServerConfig{Receiver: &transporttest.Recorder{}, Insecure: true, MaxPayload: payload})
	good := envelope(t, transporttest.Message(), wire.Seal{})
	for size, want := range map[int]int{payload + wire.Overhead: 200, payload + wire.Overhead + 1: 413} {
		body := append(bytes.Clone(good), bytes.Repeat([]byte(" "), size-len(good))...)
		if w := post(t, s, wire.MessageType, body); w.Code != want {
			t.Errorf("%d bytes: got %d %s, want %d", size, w.Code, w.Body, want)
		}
	}
}

type halfReader struct{ b []byte }

func (h *halfReader) Read(p []byte) (int, error) {
	if len(h.b) < 100 {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, h.b[:50])
	h.b = h.b[n:]
	return n, nil
}

func TestABatchAnswersForEachMessageItCanName(t *testing.T) {
	t.Parallel()
	r := &transporttest.Recorder{}
	s := newServer(t, transport.ServerConfig{Receiver: r, MaxPayload: 100})
	m, large := transporttest.Message(), transporttest.Message()
	large.Payload = []byte(`"` + strings.Repeat("x", 100) + `"`)
	var body []byte
	for _, frame := range [][]byte{
		envelope(t, m, wire.Seal{Secret: secret(t, "k")}),
		[]byte("no envelope"),
		[]byte(`{"messageId":"m2"}`),
		envelope(t, large, wire.Seal{Secret: secret(t, "k")}),
		[]byte(`{"messageId":"m3","sourceServiceId":"conformance","endpoint":"e"}`),
	} {
		body = wire.AppendFrame(body, frame)
	}
	w := post(t, s, wire.BatchType, body)
	frames, err := wire.Frames(w.Body.Bytes(), 10)
	if err != nil || w.Code != 200 || w.Header().Get("Content-Type") != wire.BatchType {
		t.Fatalf("got %d %v %v", w.Code, w.Header(), err)
	}
	got := map[string]string{}
	for _, f := range frames {
		var d wire.Decoder
		reply, err := d.DecodeReply(f)
		if err != nil {
			t.Fatal(err)
		}
		got[reply.MessageID] = reply.Outcome + " " + reply.Code
	}
	want := map[string]string{
		string(m.ID): "delivered ", "m2": "permanent bad_envelope", string(large.ID): "permanent too_large", "m3": "lane_fault signature_refused",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(r.Got()) != 1 {
		t.Errorf("got %v and %d messages (-want +got):\n%s", got, len(r.Got()), diff)
	}
}

func TestALargeReplyLeavesTheRestOut(t *testing.T) {
	t.Parallel()
	s := newServer(t, transport.ServerConfig{Insecure: true, Receiver: &transporttest.Recorder{
		Answer: func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
			return holdfast.Receipt{Response: bytes.Repeat([]byte("1"), 3<<20)}, nil
		},
	}})
	var body []byte
	for range 3 {
		body = wire.AppendFrame(body, envelope(t, transporttest.Message(), wire.Seal{}))
	}
	frames, err := wire.Frames(post(t, s, wire.BatchType, body).Body.Bytes(), 10)
	if err != nil || len(frames) != 1 {
		t.Errorf("got %d replies, %v; want the first, and the rest asked for again", len(frames), err)
	}
}

func TestWorkOutlivesItsSender(t *testing.T) {
	t.Parallel()
	entered, finish, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	url := listen(t, newServer(t, transport.ServerConfig{Insecure: true, Receiver: &transporttest.Recorder{
		Answer: func(ctx context.Context, _ holdfast.Message) (holdfast.Receipt, error) {
			close(entered)
			<-finish
			ended <- ctx.Err()
			return holdfast.Receipt{}, nil
		},
	}}))
	client := newClient(t, transport.ClientConfig{URL: url})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := client.Deliver(ctx, transporttest.Message()); err == nil {
		t.Error("got an ack, want the cancellation")
	}
	close(finish)
	if err := <-ended; err != nil {
		t.Errorf("got %v in the receiver, want it undisturbed", err)
	}
}

func TestWorkEndsAtTheServersTimeout(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := newServer(t, transport.ServerConfig{Insecure: true, Timeout: 5 * time.Second, Receiver: &transporttest.Recorder{
			Answer: func(ctx context.Context, _ holdfast.Message) (holdfast.Receipt, error) {
				<-ctx.Done()
				return holdfast.Receipt{}, ctx.Err()
			},
		}})
		w := post(t, s, wire.MessageType, envelope(t, transporttest.Message(), wire.Seal{}))
		if w.Code != 500 || !strings.Contains(w.Body.String(), `"timeout"`) {
			t.Errorf("got %d %s, want 500 with code timeout", w.Code, w.Body)
		}
	})
}

func TestABusyServerDoesNotBeginPastTheBudget(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		finish := make(chan struct{})
		r := &transporttest.Recorder{Answer: func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
			<-finish
			return holdfast.Receipt{}, nil
		}}
		client := pipes(t, newServer(t, transport.ServerConfig{Insecure: true, Concurrency: 1, Receiver: r, Timeout: time.Hour}), transport.ClientConfig{})
		first := make(chan error)
		go func() {
			_, err := client.Deliver(t.Context(), transporttest.Message())
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := client.Deliver(ctx, transporttest.Message())
		if got := classified(t, err); got.Outcome != holdfast.NotStarted {
			t.Errorf("got %+v (%v), want not_started", got, err)
		}
		close(finish)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if got := len(r.Got()); got != 1 {
			t.Errorf("got %d messages, want 1", got)
		}
	})
}

func TestAPanicOutsideTheReceiverIsContained(t *testing.T) {
	t.Parallel()
	var l logged
	s := newServer(t, transport.ServerConfig{
		Receiver: &transporttest.Recorder{}, Logger: l.logger(),
		Peer: func(string) (transport.Peer, bool) { panic("hidden") },
	})
	w := post(t, s, wire.MessageType, envelope(t, transporttest.Message(), wire.Seal{}))
	if w.Code != 500 || strings.Contains(w.Body.String(), "hidden") {
		t.Errorf("got %d %s, want 500 without internals", w.Code, w.Body)
	}
	if r := l.records(t); len(r) != 1 || r[0]["level"] != "ERROR" || r[0]["panic"] != "string" {
		t.Errorf("got log %v", r)
	}
}
