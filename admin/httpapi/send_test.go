package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
)

func TestSendAnswersWhatBecameOfTheMessage(t *testing.T) {
	t.Parallel()
	f := serve(t)
	body := `{"id":"0190C5A2-7B1E-7C3D-9A4F-1D2E3F405162","destination":"inventory","endpoint":"OrderApproved","payload":{"order":42}}`
	const id = "0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162"
	want := api.Accepted{ID: id, State: "pending", Accepted: true, Buffered: true, Durability: "local"}
	check := func(w *httptest.ResponseRecorder, status int, want api.Accepted) {
		t.Helper()
		var got api.Accepted
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%v in %s", err, w.Body)
		}
		if diff := cmp.Diff(want, got); w.Code != status || diff != "" {
			t.Errorf("got %d, want %d (-want +got):\n%s", w.Code, status, diff)
		}
		if got := w.Header().Get("Location"); got != "/v1/messages/"+id {
			t.Errorf("got location %q", got)
		}
	}
	check(f.do(t, call{method: "POST", path: "/v1/messages", body: body}), 202, want)

	want.Duplicate = true
	check(f.do(t, call{method: "POST", path: "/v1/messages", body: strings.ReplaceAll(body, "-", "")}), 200, want)

	f.put(t, id, func(r *holdfast.Record) { r.State = holdfast.Delivered })
	want.State, want.Buffered = "delivered", false
	check(f.do(t, call{method: "POST", path: "/v1/messages", body: body}), 200, want)

	w := f.do(t, call{method: "POST", path: "/v1/messages", body: strings.Replace(body, "42", "43", 1)})
	if p := problem(t, w); w.Code != 409 || p.Type != "urn:holdfast:problem:conflict" || !strings.Contains(p.Detail, id) {
		t.Errorf("other content: got %d %+v, want 409 that names the id", w.Code, p)
	}
}

func TestTheBytesOfAPayloadAreKept(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		`{ "b" : 1.00, "a":"\u00e9<&>é ",  "n":123456789012345678901234567890, "n":1e400 }`,
		`"text"`, `null`, `[]`, `-0.0`,
	} {
		f := serve(t)
		id := f.send(t, `{"payload": `+payload+` ,"destination":"inventory","endpoint":"x"}`)
		r, err := f.store.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.Message.Payload); got != payload {
			t.Errorf("stored: got %s, want %s", got, payload)
		}
		w := f.do(t, call{method: "GET", path: "/v1/messages/" + string(id)})
		if !json.Valid(w.Body.Bytes()) || !strings.HasSuffix(w.Body.String(), `"payload":`+payload+"}\n") {
			t.Errorf("shown: got %s, want %s in it", w.Body, payload)
		}
	}
}

func TestAPayloadThatIsNotJSONIsShownInBase64(t *testing.T) {
	t.Parallel()
	f := serve(t)
	_, err := f.store.Enqueue(t.Context(), holdfast.Message{ID: "binary", Destination: "inventory", Endpoint: "x", Payload: []byte{0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	got := ok[api.MessageDetail](t, f, call{method: "GET", path: "/v1/messages/binary"})
	if got.PayloadBase64 != "AAEC" || got.Payload != nil {
		t.Errorf("got %q and %q, want AAEC and nothing", got.PayloadBase64, got.Payload)
	}
}

func TestFieldsOfARequestReachTheMessage(t *testing.T) {
	t.Parallel()
	policy := func(attempts int) *holdfast.RetryPolicy { return &holdfast.RetryPolicy{Attempts: attempts} }
	cases := map[string]struct {
		body string
		key  string
		want holdfast.Message
	}{
		"defaults of the destination": {
			body: `{"id":"a","destination":"inventory","endpoint":"x"}`,
			want: holdfast.Message{ID: "a", Source: "plant-7", Destination: "inventory", Endpoint: "x", Kind: "Signal", Payload: []byte("null"), TTL: 24 * time.Hour},
		},
		"everything": {
			body: `{"id":"a","source":"erp","destination":"billing","endpoint":"x","kind":"Command","correlationId":"c","orderingKey":"o",
				"headers":{"h":"v"},"ttl":"1w2d","delay":"1.5h","maxRetries":5,"payload":1}`,
			want: holdfast.Message{
				ID: "a", Source: "erp", Destination: "billing", Endpoint: "x", Kind: "Command", CorrelationID: "c", OrderingKey: "o",
				Headers: map[string]string{"h": "v"}, TTL: 9 * 24 * time.Hour, Delay: 90 * time.Minute, Retry: policy(6), Payload: []byte("1"),
			},
		},
		"no end": {
			body: `{"id":"a","destination":"inventory","endpoint":"x","ttl":"none","maxRetries":0}`,
			want: holdfast.Message{ID: "a", Source: "plant-7", Destination: "inventory", Endpoint: "x", Kind: "Signal", Payload: []byte("null"), Retry: policy(holdfast.Unlimited)},
		},
		"id in the header": {
			body: `{"destination":"billing","endpoint":"x"}`, key: `"{0190C5A2-7B1E-7C3D-9A4F-1D2E3F405162}"`,
			want: holdfast.Message{ID: "0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162", Source: "plant-7", Destination: "billing", Endpoint: "x", Kind: "Signal", Payload: []byte("null")},
		},
		"the same id in both": {
			body: `{"id":"0190c5a27b1e7c3d9a4f1d2e3f405162","destination":"billing","endpoint":"x"}`, key: "0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162",
			want: holdfast.Message{ID: "0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162", Source: "plant-7", Destination: "billing", Endpoint: "x", Kind: "Signal", Payload: []byte("null")},
		},
		"nulls are absent": {
			body: `{"id":"a","destination":"billing","endpoint":"x","ttl":null,"maxRetries":null,"headers":null,"kind":null,"payload":null}`,
			want: holdfast.Message{ID: "a", Source: "plant-7", Destination: "billing", Endpoint: "x", Kind: "Signal", Payload: []byte("null")},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			header := map[string]string{}
			if c.key != "" {
				header["Idempotency-Key"] = c.key
			}
			accepted := ok[api.Accepted](t, f, call{method: "POST", path: "/v1/messages", body: c.body, header: header})
			r, err := f.store.Get(t.Context(), holdfast.ID(accepted.ID))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Message); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnIDThatAPathMustEscapeIsFoundAgain(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a/b", "..", "a%2Fb", "a?b#c", "~a&b=c;d"} {
		f := serve(t)
		body, err := json.Marshal(api.NewMessage{ID: id, Destination: "inventory", Endpoint: "x"})
		if err != nil {
			t.Fatal(err)
		}
		w := f.do(t, call{method: "POST", path: "/v1/messages", body: string(body)})
		location := w.Header().Get("Location")
		if got := ok[api.MessageDetail](t, f, call{method: "GET", path: location}).ID; got != id {
			t.Errorf("%s: got id %q, want %q", location, got, id)
		}
	}
}

func TestAnAcceptedMessageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := serve(t, func(s *httpapi.Server) {
		s.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	body := `{"id":"m-1","destination":"inventory","endpoint":"OrderApproved","payload":"private"}`
	f.send(t, body)
	f.send(t, body)
	if n := strings.Count(log.String(), `msg="message accepted" message_id=m-1 destination=inventory endpoint=OrderApproved actor=local`); n != 1 {
		t.Errorf("got %d lines in %q, want 1", n, log.String())
	}
	if strings.Contains(log.String(), "private") {
		t.Errorf("got the payload in %q", log.String())
	}
}

func BenchmarkSend(b *testing.B) {
	f := serve(b, func(s *httpapi.Server) { s.Enqueuer = accepting{} })
	body := `{"id":"0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162","destination":"inventory","endpoint":"OrderApproved","payload":{"text":"` + strings.Repeat("x", 1000) + `"}}`
	b.ReportAllocs()
	for b.Loop() {
		if w := f.do(b, call{method: "POST", path: "/v1/messages", body: body}); w.Code != 202 {
			b.Fatal(w.Code, w.Body)
		}
	}
}

// accepting takes every message and keeps none.
type accepting struct{}

func (accepting) Enqueue(_ context.Context, ms ...holdfast.Message) ([]holdfast.Receipt, error) {
	return []holdfast.Receipt{{ID: ms[0].ID}}, nil
}
