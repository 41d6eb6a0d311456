package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
)

const (
	first  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	second = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	pair   = "whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

// odd is a payload that changes if anybody parses and writes it again.
const odd = "{ \"b\" : 10.50,\"a\":12345678901234567890, \"u\":\"\\u00e9\u00e9\" }\n"

func verifies(t *testing.T, h hit, secret string) (id string, err error) {
	t.Helper()
	if strings.HasPrefix(secret, "whsk_") {
		signer, err := standardwebhooks.NewSigner(secret)
		if err != nil {
			t.Fatal(err)
		}
		secret = signer.Public()
	}
	v, err := standardwebhooks.NewVerifier(secret)
	if err != nil {
		t.Fatal(err)
	}
	return standardwebhooks.Verify(h.header, []byte(h.body), time.Now(), time.Minute, v)
}

// 48, H and I: the payload is sent, and signed, byte by byte as it is stored; with each attempt the
// id is the same. A message that is sent again on request has the id of the first.
func TestTheStoredBytesAreSignedAndSent(t *testing.T) {
	t.Parallel()
	r := receive(t, answer(503, ""))
	d := delivererTo(t, webhook.Target{URL: r.URL, Secrets: []webhook.Secret{{Value: first}, {Value: pair}}})
	m := holdfast.Message{ID: "m1", Payload: []byte(odd)}
	_, _ = d.Deliver(t.Context(), m)
	_, _ = d.Deliver(t.Context(), m)
	_, _ = d.Deliver(t.Context(), holdfast.Message{ID: "m2", Payload: []byte(odd), Headers: map[string]string{webhook.HeaderID: "m1"}})
	for i, h := range r.got() {
		for _, secret := range []string{first, pair} {
			if id, err := verifies(t, h, secret); err != nil || id != "m1" {
				t.Errorf("request %d: got the id %q, %v", i, id, err)
			}
		}
		if h.body != odd || h.header.Get("Content-Type") != "application/json" {
			t.Errorf("request %d: got %q as %s", i, h.body, h.header.Get("Content-Type"))
		}
	}
	if n := len(r.got()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// 44: a secret that is being replaced signs until its end, and a new one from the next attempt on.
func TestSecretsAreThoseOfTheAttempt(t *testing.T) {
	t.Parallel()
	r := receive(t, answer(204, ""))
	target := webhook.Target{URL: r.URL}
	d := sender(t, local()).Deliverer(func(context.Context) (webhook.Target, error) { return target, nil })
	for name, c := range map[string]struct {
		secrets []webhook.Secret
		signs   map[string]bool
	}{
		"one":      {[]webhook.Secret{{Value: first}}, map[string]bool{first: true, second: false}},
		"both":     {[]webhook.Secret{{Value: second}, {Value: first, Until: time.Now().Add(time.Hour)}}, map[string]bool{first: true, second: true}},
		"ended":    {[]webhook.Secret{{Value: second}, {Value: first, Until: time.Now().Add(-time.Second)}}, map[string]bool{first: false, second: true}},
		"two ways": {[]webhook.Secret{{Value: pair}, {Value: first}}, map[string]bool{first: true, pair: true, second: false}},
	} {
		target.Secrets = c.secrets
		if f := failure(t, d); f != nil {
			t.Fatalf("%s: %v", name, f)
		}
		all := r.got()
		for secret, signs := range c.signs {
			if _, err := verifies(t, all[len(all)-1], secret); (err == nil) != signs {
				t.Errorf("%s: %.10s…: got %v, want a signature: %t", name, secret, err, signs)
			}
		}
	}
	target.Secrets = nil
	if f := failure(t, d); f != nil {
		t.Fatal(f)
	}
	if all := r.got(); all[len(all)-1].header.Get("webhook-id") != "m" || all[len(all)-1].header.Get("webhook-signature") != "" {
		t.Errorf("without a secret: got %v", all[len(all)-1].header)
	}
}

// What cannot be signed as it should is not sent.
func TestWhatCannotBeSignedParks(t *testing.T) {
	t.Parallel()
	r := receive(t, answer(204, ""))
	for name, c := range map[string]struct {
		secret webhook.Secret
		m      holdfast.Message
		code   string
	}{
		"no secret":         {webhook.Secret{Value: "whsec_hunter2"}, holdfast.Message{ID: "m"}, "bad_secret"},
		"all have ended":    {webhook.Secret{Value: first, Until: time.Now()}, holdfast.Message{ID: "m"}, "bad_secret"},
		"an id with a dot":  {webhook.Secret{Value: first}, holdfast.Message{ID: "m.1"}, "bad_id"},
		"an id of headers":  {webhook.Secret{Value: first}, holdfast.Message{ID: "m", Headers: map[string]string{webhook.HeaderID: "a\nb"}}, "bad_id"},
		"the public half":   {webhook.Secret{Value: "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="}, holdfast.Message{ID: "m"}, "bad_secret"},
		"no secret at all ": {webhook.Secret{}, holdfast.Message{ID: "m"}, "bad_secret"},
	} {
		_, err := delivererTo(t, webhook.Target{URL: r.URL, Secrets: []webhook.Secret{c.secret}}).Deliver(t.Context(), c.m)
		f := holdfast.AsFailure(err)
		if err == nil || f.Outcome != holdfast.Permanent || f.Code != c.code || strings.Contains(f.Error(), "hunter2") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n := len(r.got()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func event() holdfast.Message {
	return holdfast.Message{
		ID: "m", Source: "shop", Endpoint: "order.created", Payload: []byte(odd),
		Headers: map[string]string{
			"ce-source": "/shop/ö 1", "ce-subject": `"50%"`, "ce-dataref": "https://example.com/?a=b", "ce-Bad": "x", "ce-data": "x", "ce-bad-name": "x",
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "other": "x",
		},
	}
}

func TestCloudEventsAsHeaders(t *testing.T) {
	t.Parallel()
	r := receive(t, answer(204, ""))
	if _, err := delivererTo(t, webhook.Target{URL: r.URL, Mode: webhook.Binary}).Deliver(t.Context(), event()); err != nil {
		t.Fatal(err)
	}
	h := r.got()[0]
	got := map[string]string{}
	for name := range h.header {
		if strings.HasPrefix(name, "Ce-") || name == "Other" || name == "Traceparent" {
			got[name] = h.header.Get(name)
		}
	}
	want := map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": "m", "Ce-Type": "order.created", "Ce-Source": "/shop/%C3%B6%201", "Ce-Subject": "%2250%25%22",
		"Ce-Dataref": "https://example.com/?a=b", "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	if diff := cmp.Diff(want, got); diff != "" || h.body != odd {
		t.Errorf("the body %q; headers (-want +got):\n%s", h.body, diff)
	}
}

func TestCloudEventsAsADocument(t *testing.T) {
	t.Parallel()
	r := receive(t, answer(204, ""))
	d := delivererTo(t, webhook.Target{URL: r.URL, Mode: webhook.Structured, Secrets: []webhook.Secret{{Value: first}}})
	for _, c := range []struct{ payload, kind, data string }{
		{odd, "", `"datacontenttype":"application/json","data":` + odd + "}"},
		{"12345678901234567890", "application/x+json; charset=utf-8", `"datacontenttype":"application/x+json; charset=utf-8","data":12345678901234567890}`},
		{"no JSON", "application/json", `"datacontenttype":"application/json","data_base64":"bm8gSlNPTg=="}`},
		{`{"a":1}`, "text/plain", `"datacontenttype":"text/plain","data_base64":"eyJhIjoxfQ=="}`},
		{"", "", `"datacontenttype":"application/json"}`},
	} {
		m := event()
		m.Payload = []byte(c.payload)
		if c.kind != "" {
			m.Headers["content-type"] = c.kind
		}
		if _, err := d.Deliver(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		all := r.got()
		h := all[len(all)-1]
		want := `{"dataref":"https://example.com/?a=b","id":"m","source":"/shop/ö 1","specversion":"1.0","subject":"\"50%\"","type":"order.created",` + c.data
		if h.body != want || h.header.Get("Content-Type") != "application/cloudevents+json" || !json.Valid([]byte(h.body)) {
			t.Errorf("got  %s\nwant %s", h.body, want)
		}
		if _, err := verifies(t, h, first); err != nil {
			t.Errorf("%s: %v", c.kind, err)
		}
	}
}

// A payload is of its own kind, and headers of the subscription are sent, but not in the place of ours.
func TestHeadersOfARequest(t *testing.T) {
	t.Parallel()
	r := receive(t, answer(204, ""))
	d := delivererTo(t, webhook.Target{URL: r.URL, Headers: map[string]string{"X-Tenant": "7", "user-agent": "them"}})
	if _, err := d.Deliver(t.Context(), holdfast.Message{ID: "m", Headers: map[string]string{"content-type": "application/cloudevents+json"}}); err != nil {
		t.Fatal(err)
	}
	h := r.got()[0].header
	if h.Get("X-Tenant") != "7" || h.Get("User-Agent") != "them" || h.Get("Content-Type") != "application/cloudevents+json" {
		t.Errorf("got %v", h)
	}
	for name := range map[string]string{"Webhook-Id": "x", "content-type": "x", "Host": "x", "Ce-Id": "x", "a b": "x"} {
		d := delivererTo(t, webhook.Target{URL: r.URL, Headers: map[string]string{name: "x"}})
		if f := failure(t, d); f == nil || f.Code != "bad_header" || f.Outcome != holdfast.Permanent {
			t.Errorf("%s: got %v", name, f)
		}
	}
}

// A subscription whose keeper cannot say what it is charges no message.
func TestWithoutATargetNothingIsCharged(t *testing.T) {
	t.Parallel()
	s := sender(t, local())
	d := s.Deliverer(func(context.Context) (webhook.Target, error) {
		return webhook.Target{}, errors.New("the key is missing")
	})
	if f := failure(t, d); f == nil || f.Outcome != holdfast.LaneFault || !strings.Contains(f.Error(), "the key is missing") {
		t.Errorf("got %+v", f)
	}
	own := &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "paused"}
	d = s.Deliverer(func(context.Context) (webhook.Target, error) { return webhook.Target{}, own })
	if f := failure(t, d); f != own {
		t.Errorf("got %+v, want its own", f)
	}
}
