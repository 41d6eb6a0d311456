// Package httpcall delivers a message by calling a foreign HTTP API: the
// payload is the body, the message id is the Idempotency-Key, and the answer's
// body becomes the response. It promises that an outcome is classified by
// type and status code only, that redirects are not followed, and that no
// more of an answer is read than is kept. A call may reach its target twice;
// a target that must not act twice uses the key.
package httpcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
)

// MaxResponse is the most of an answer that is kept; a longer one is a
// permanent failure, since every retry would bring it again.
const MaxResponse = 1 << 20

// Caller calls one URL. Its zero value is not usable; New makes one.
type Caller struct {
	url    string
	client *http.Client
}

var _ holdfast.Deliverer = (*Caller)(nil)

// New returns a Caller of target, an absolute http or https URL. transport
// may be nil.
func New(target string, transport http.RoundTripper) (*Caller, error) {
	u, err := url.Parse(target)
	if err != nil { // its text holds the whole target, with a password perhaps
		return nil, errors.New("forward URL: it cannot be read as a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("forward URL %q: must begin with http:// or https:// and name a host", u.Redacted())
	}
	if transport == nil {
		// Without proxies: for a local program a variable must not send calls elsewhere.
		transport = &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 32, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true,
		}
	}
	return &Caller{url: target, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Deliver makes one call.
func (c *Caller) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(m.Payload))
	if err != nil {
		return holdfast.Receipt{}, &holdfast.Failure{Outcome: holdfast.Permanent, Code: "bad_request", Err: err}
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Idempotency-Key", string(m.ID))
	h.Set("Holdfast-Source", m.Source)
	h.Set("Holdfast-Endpoint", m.Endpoint)
	h.Set("Holdfast-Kind", string(m.Kind))
	if m.CorrelationID != "" {
		h.Set("Holdfast-Correlation-Id", url.QueryEscape(m.CorrelationID))
	}
	for name, value := range m.Headers { // names may differ only in case: HTTP's then repeat
		h.Add("Holdfast-Header-"+url.QueryEscape(name), url.QueryEscape(value))
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return holdfast.Receipt{}, failedCall(err)
	}
	defer resp.Body.Close() //nolint:errcheck // the answer has been read, or is given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxResponse+1))
	switch {
	case err != nil:
		return holdfast.Receipt{}, &holdfast.Failure{Code: "response_cut", MaybeDelivered: true, Err: errors.New("the answer was cut off")}
	case resp.StatusCode/100 != 2:
		return holdfast.Receipt{}, failedStatus(resp)
	case len(body) > MaxResponse:
		return holdfast.Receipt{}, &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: "response_too_large", MaybeDelivered: true,
			Err: fmt.Errorf("the answer is longer than %d bytes", MaxResponse),
		}
	}
	return holdfast.Receipt{ID: m.ID, State: holdfast.Delivered, Response: body}, nil
}

// failedCall classifies a call without an answer. The URL in the error may
// hold a password or token, so only its cause is kept.
func failedCall(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	f := &holdfast.Failure{Code: "call_failed", MaybeDelivered: true, Err: err}
	switch {
	case dialFailed(err):
		f.Outcome, f.Code, f.MaybeDelivered = holdfast.Unreachable, "unreachable", false
	case badCertificate(err):
		f.Code, f.MaybeDelivered = "certificate", false
	case errors.Is(err, context.DeadlineExceeded):
		f.Code = "timeout"
	}
	return f
}

// failedStatus classifies an answer that is no success: 4xx is for ever,
// except those that say "not now"; everything else may pass.
func failedStatus(resp *http.Response) error {
	f := &holdfast.Failure{
		Code: fmt.Sprintf("http_%d", resp.StatusCode), RetryAfter: retryafter.Of(resp.Header),
		Err: fmt.Errorf("the endpoint answered %d", resp.StatusCode),
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
	default:
		if resp.StatusCode/100 == 4 {
			f.Outcome = holdfast.Permanent
		}
	}
	return f
}
