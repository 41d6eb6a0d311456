package webhook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
)

// local allows the servers of tests.
func local() webhook.Settings {
	return webhook.Settings{Addresses: []string{"127.0.0.0/8", "::1", "public"}}
}

func sender(t *testing.T, conf webhook.Settings) *webhook.Sender {
	t.Helper()
	s, err := webhook.New(conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// delivererTo delivers always to the same target.
func delivererTo(t *testing.T, target webhook.Target) holdfast.Deliverer {
	t.Helper()
	return sender(t, local()).Deliverer(func(context.Context) (webhook.Target, error) { return target, nil })
}

// failure is the failure of one attempt; nil: it succeeded.
func failure(t *testing.T, d holdfast.Deliverer) *holdfast.Failure {
	t.Helper()
	if _, err := d.Deliver(t.Context(), holdfast.Message{ID: "m", Source: "shop", Endpoint: "order.created", Payload: []byte("{}")}); err != nil {
		return holdfast.AsFailure(err)
	}
	return nil
}

// hit is a request that a receiver got.
type hit struct {
	header http.Header
	body   string
}

// receiver keeps what it gets.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	hits []hit
}

func receive(t *testing.T, h http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.hits = append(r.hits, hit{req.Header, string(body)})
		r.mu.Unlock()
		h(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []hit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]hit(nil), r.hits...)
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}
