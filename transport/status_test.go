package transport_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
)

// answering is a peer that answers every request alike.
func answering(status int, header http.Header, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // a stub
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		io.WriteString(w, body) //nolint:errcheck // a stub
	})
}

// classified is the Failure of err without its text.
func classified(tb testing.TB, err error) holdfast.Failure {
	tb.Helper()
	f, ok := errors.AsType[*holdfast.Failure](err)
	if !ok {
		tb.Fatalf("got error %v, want a Failure", err)
	}
	c := *f
	c.Err = nil
	return c
}

func TestStatusesAreClassified(t *testing.T) {
	t.Parallel()
	const (
		T, P, L = holdfast.Transient, holdfast.Permanent, holdfast.LaneFault
		date    = "Sat, 14 Feb 2026 12:00:00 GMT"
	)
	cases := []struct {
		status int
		header http.Header
		body   string
		want   holdfast.Failure
	}{
		{200, nil, "", holdfast.Failure{Code: "no_ack", MaybeDelivered: true}},
		{200, nil, "<html>", holdfast.Failure{Code: "no_ack", MaybeDelivered: true}},
		{200, nil, `{"acknowledged":false}`, holdfast.Failure{Code: "no_ack", MaybeDelivered: true}},
		{200, nil, `{"Acknowledged":true}`, holdfast.Failure{Code: "no_ack", MaybeDelivered: true}},
		{200, nil, `{"acknowledged":true`, holdfast.Failure{Code: "no_ack", MaybeDelivered: true}},
		{202, nil, `OK`, holdfast.Failure{Code: "no_ack", MaybeDelivered: true}},
		{204, nil, ``, holdfast.Failure{Code: "no_ack", MaybeDelivered: true}},
		{301, http.Header{"Location": {"/"}}, "", holdfast.Failure{Outcome: L, Code: "redirect"}},
		{307, http.Header{"Location": {"/"}}, "", holdfast.Failure{Outcome: L, Code: "redirect"}},
		{400, nil, "", holdfast.Failure{Outcome: P, Code: "http_400", Reason: holdfast.ReasonPermanent}},
		{400, nil, "Client sent an HTTP request to an HTTPS server.\n", holdfast.Failure{Outcome: L, Code: "tls_failed"}},
		{400, nil, "<h1>400</h1>The plain HTTP request was sent to HTTPS port", holdfast.Failure{Outcome: L, Code: "tls_failed"}},
		{401, nil, "", holdfast.Failure{Outcome: L, Code: "http_401"}},
		{403, nil, "", holdfast.Failure{Outcome: L, Code: "http_403"}},
		{404, nil, "", holdfast.Failure{Outcome: L, Code: "http_404"}},
		{405, nil, "", holdfast.Failure{Outcome: L, Code: "http_405"}},
		{407, nil, "", holdfast.Failure{Outcome: L, Code: "http_407"}},
		{408, nil, "", holdfast.Failure{Outcome: T, Code: "http_408"}},
		{409, nil, "", holdfast.Failure{Outcome: L, Code: "http_409"}},
		{409, nil, `{"acknowledged":false,"outcome":"permanent","reason":"conflict","code":"conflict"}`, holdfast.Failure{Outcome: P, Code: "conflict", Reason: holdfast.ReasonConflict}},
		{410, nil, "", holdfast.Failure{Outcome: L, Code: "http_410"}},
		{413, nil, "", holdfast.Failure{Outcome: P, Code: "http_413", Reason: holdfast.ReasonTooLarge}},
		{415, nil, "", holdfast.Failure{Outcome: L, Code: "http_415"}},
		{418, nil, "", holdfast.Failure{Outcome: L, Code: "http_418"}},
		{422, nil, "", holdfast.Failure{Outcome: P, Code: "http_422", Reason: holdfast.ReasonPermanent}},
		{425, nil, "", holdfast.Failure{Outcome: T, Code: "http_425"}},
		{426, nil, "", holdfast.Failure{Outcome: L, Code: "http_426"}},
		{429, http.Header{"Retry-After": {"120"}}, "", holdfast.Failure{Outcome: T, Code: "http_429", RetryAfter: 2 * time.Minute}},
		{500, nil, `{"acknowledged":false,"error":"boom"}`, holdfast.Failure{Outcome: T, Code: "http_500"}},
		{500, nil, `{"acknowledged":true}`, holdfast.Failure{Outcome: T, Code: "http_500"}},
		{500, nil, `{"acknowledged":false,"duplicateDetected":true}`, holdfast.Failure{Outcome: T, Code: "http_500"}},
		{500, nil, `{"acknowledged":false,"outcome":"delivered"}`, holdfast.Failure{Outcome: T, Code: "http_500"}},
		{500, nil, `{"acknowledged":false,"outcome":"permanent"}`, holdfast.Failure{Outcome: P}},
		{502, nil, "", holdfast.Failure{Outcome: T, Code: "http_502", MaybeDelivered: true}},
		{503, http.Header{"Retry-After": {"Sat, 14 Feb 2026 12:01:30 GMT"}, "Date": {date}}, "", holdfast.Failure{Outcome: T, Code: "http_503", RetryAfter: 90 * time.Second}},
		{503, http.Header{"Retry-After": {"Sat, 14 Feb 2026 11:00:00 GMT"}, "Date": {date}}, "", holdfast.Failure{Outcome: T, Code: "http_503"}},
		{503, http.Header{"Retry-After": {"4294967295"}}, "", holdfast.Failure{Outcome: T, Code: "http_503", RetryAfter: 5 * time.Minute}}, // F1-06
		{503, http.Header{"Retry-After": {"soon"}}, "", holdfast.Failure{Outcome: T, Code: "http_503"}},
		{503, http.Header{"Retry-After": {"-5"}}, "", holdfast.Failure{Outcome: T, Code: "http_503"}},
		{503, http.Header{"Retry-After": {"1"}}, `{"acknowledged":false,"outcome":"transient","code":"busy","retryAfterMs":1500}`, holdfast.Failure{Code: "busy", RetryAfter: 1500 * time.Millisecond}},
		{503, nil, `{"acknowledged":false,"outcome":"not_started"}`, holdfast.Failure{Outcome: holdfast.NotStarted}},
		{503, nil, `{"acknowledged":false,"outcome":"unreachable","maybeDelivered":false}`, holdfast.Failure{Outcome: holdfast.Unreachable}},
		{504, nil, "", holdfast.Failure{Outcome: T, Code: "http_504", MaybeDelivered: true}},
	}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%d/%d", i, c.status), func(t *testing.T) {
			t.Parallel()
			client := newClient(t, transport.ClientConfig{URL: listen(t, answering(c.status, c.header, c.body))})
			_, err := client.Deliver(t.Context(), transporttest.Message())
			got := classified(t, err)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("got %+v (%v), want %+v", got, err, c.want)
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	followed := make(chan string, 10)
	target := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { followed <- r.URL.String() }))
	for _, status := range []int{301, 302, 303, 307, 308} {
		client := newClient(t, transport.ClientConfig{URL: listen(t, answering(status, http.Header{"Location": {target}}, ""))})
		_, err := client.Deliver(t.Context(), transporttest.Message())
		if got := classified(t, err); got.Outcome != holdfast.LaneFault {
			t.Errorf("%d: got %v, want lane_fault", status, got.Outcome)
		}
	}
	if len(followed) > 0 {
		t.Errorf("got a request to %s, want none", <-followed)
	}
}

func TestAReplyThatDoesNotEndIsCut(t *testing.T) {
	t.Parallel()
	url := listen(t, answering(200, nil, `{"acknowledged":true,"payload":"`+strings.Repeat("x", 5000)+`"}`))
	client := newClient(t, transport.ClientConfig{URL: url, MaxReply: 4096})
	_, err := client.Deliver(t.Context(), transporttest.Message())
	if got, want := classified(t, err), (holdfast.Failure{Code: "reply_too_large", MaybeDelivered: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The peer's clock is known from its Date; a refused signature does not say
// why, so the sender says what it can see.
func TestARefusalHintsAtClocks(t *testing.T) {
	t.Parallel()
	url := listen(t, answering(401, http.Header{"Date": {"Sat, 14 Feb 2026 12:00:00 GMT"}}, `{"acknowledged":false,"outcome":"lane_fault","code":"signature_refused"}`))
	client := newClient(t, transport.ClientConfig{URL: url})
	_, err := client.Deliver(t.Context(), transporttest.Message())
	if err == nil || !strings.Contains(err.Error(), "clock") {
		t.Errorf("got %v, want a hint at the clocks", err)
	}
}
