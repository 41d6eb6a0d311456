package httpcall_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/httpcall"
)

func caller(t *testing.T, target string) *httpcall.Caller {
	t.Helper()
	c, err := httpcall.New(httpcall.Config{URL: target})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheTargetGetsPayloadAndKey(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"n": 1}`)
	}))
	defer srv.Close()
	receipt, err := caller(t, srv.URL).Deliver(t.Context(), holdfast.Message{
		ID: "m-1", Source: "shop", Endpoint: "E", Payload: []byte(`{"a":  1}`), CorrelationID: "c 1", Headers: map[string]string{"x-y": "a\"b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(receipt.Response) != `{"n": 1}` || string(body) != `{"a":  1}` {
		t.Errorf("got response %q, body %q", receipt.Response, body)
	}
	for name, want := range map[string]string{
		"Idempotency-Key": "m-1", "Holdfast-Source": "shop", "Holdfast-Endpoint": "E",
		"Holdfast-Correlation-Id": "c+1", "Holdfast-Header-X-Y": "a%22b", "Content-Type": "application/json",
	} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("header %s is %q, want %q", name, v, want)
		}
	}
}

func TestAnswersAreClassifiedByStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]holdfast.Outcome{
		301: holdfast.Transient, 400: holdfast.Permanent, 404: holdfast.Permanent, 409: holdfast.Permanent, 422: holdfast.Permanent,
		408: holdfast.Transient, 425: holdfast.Transient, 429: holdfast.Transient, 500: holdfast.Transient, 503: holdfast.Transient,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}))
		_, err := caller(t, srv.URL).Deliver(t.Context(), holdfast.Message{ID: "m"})
		f := holdfast.AsFailure(err)
		if err == nil || f.Outcome != want || f.RetryAfter != 7*time.Second {
			t.Errorf("status %d: got %v (%v, retry after %s), want %s", status, err, f.Outcome, f.RetryAfter, want)
		}
		srv.Close()
	}
}

func TestNobodyThereIsUnreachable(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	url := srv.URL
	srv.Close()
	_, err := caller(t, url).Deliver(t.Context(), holdfast.Message{ID: "m"})
	if f := holdfast.AsFailure(err); f.Outcome != holdfast.Unreachable || f.MaybeDelivered {
		t.Errorf("got %+v, want unreachable, certainly not delivered", f)
	}
}

func TestATimeOutMayHaveDelivered(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := caller(t, srv.URL).Deliver(ctx, holdfast.Message{ID: "m"})
	if f := holdfast.AsFailure(err); f.Outcome != holdfast.Transient || f.Code != "timeout" || !f.MaybeDelivered || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, want a time-out that may have delivered", f)
	}
}

func TestNoSecretInAnError(t *testing.T) {
	t.Parallel()
	_, err := caller(t, "http://user:hunter2@127.0.0.1:1/?token=hunter2").Deliver(t.Context(), holdfast.Message{ID: "m"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got error %v, want one without the password", err)
	}
}

func TestABadTargetIsRefused(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"", "/orders", "ftp://host/x", "http://", "http://%zz"} {
		if _, err := httpcall.New(httpcall.Config{URL: target}); err == nil {
			t.Errorf("target %q was accepted", target)
		}
	}
}
