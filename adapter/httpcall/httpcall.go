// Package httpcall delivers a message by calling a foreign HTTP API: the
// payload is the body, the message id is the Idempotency-Key, and the answer's
// body becomes the response. It promises that an outcome is classified by
// type and status code only, that redirects are not followed, that no more of
// an answer is read than is kept, and that no secret is in an error. A call
// may reach its target twice; a target that must not act twice uses the key.
package httpcall

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
)

// Caller calls one API. Its zero value is not usable; New makes one. It may be
// used concurrently.
type Caller struct {
	conf   Config
	client *http.Client
}

var _ holdfast.Deliverer = (*Caller)(nil)

// New returns a Caller.
func New(c Config) (*Caller, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Method, c.MaxResponse = cmp.Or(c.Method, http.MethodPost), cmp.Or(c.MaxResponse, MaxResponse)
	if c.Transport == nil {
		conf, err := c.TLS.config()
		if err != nil {
			return nil, err
		}
		c.Transport = newTransport(conf, cmp.Or(c.Connections, 32))
	}
	return &Caller{conf: c, client: &http.Client{Transport: c.Transport, CheckRedirect: stay}}, nil
}

// Close ends connections that are idle.
func (c *Caller) Close() { c.client.CloseIdleConnections() }

// Deliver makes one call; a second one in it if the target refuses a token
// that may have been withdrawn.
func (c *Caller) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	h := c.header(&m)
	if c.conf.Auth == nil {
		r, _, err := c.call(ctx, &m, h)
		return r, err
	}
	for again := false; ; again = true {
		renewable, err := c.conf.Auth.authorize(ctx, h, again)
		if err != nil {
			return holdfast.Receipt{}, err
		}
		r, status, err := c.call(ctx, &m, h)
		switch {
		case status != http.StatusUnauthorized || c.conf.succeeds(status) || holds(c.conf.Permanent, status):
			return r, err
		case again || !renewable:
			return r, &holdfast.Failure{
				Outcome: holdfast.LaneFault, Code: "credentials_refused", Err: fmt.Errorf("our credentials are not taken: %w", err),
			}
		}
	}
}

func (c *Caller) header(m *holdfast.Message) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "holdfast")
	maps.Copy(h, c.conf.Header)
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
	return h
}

// call makes one exchange. The status is zero where there was no answer.
func (c *Caller) call(ctx context.Context, m *holdfast.Message, h http.Header) (r holdfast.Receipt, status int, err error) {
	var p exchange.Progress
	var body io.Reader
	if c.conf.Method != http.MethodGet && c.conf.Method != http.MethodHead {
		body = bytes.NewReader(m.Payload)
	}
	target, err := c.conf.target(m.Endpoint, string(m.ID))
	if err != nil {
		return r, 0, &holdfast.Failure{Outcome: holdfast.Permanent, Code: "bad_name", Err: err}
	}
	req, err := http.NewRequestWithContext(p.Attach(ctx), c.conf.Method, target, body)
	if err != nil {
		return r, 0, &holdfast.Failure{Outcome: holdfast.Permanent, Code: "bad_request", Err: cause(err)}
	}
	req.Header = h
	if host := h.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return r, 0, exchange.Failure(ctx, cause(err), &p)
	}
	defer resp.Body.Close() //nolint:errcheck // the answer has been read, or is given up
	if !c.conf.succeeds(resp.StatusCode) {
		return r, resp.StatusCode, c.refused(resp)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, c.conf.MaxResponse+1))
	switch {
	case err != nil:
		return r, resp.StatusCode, &holdfast.Failure{Code: "response_cut", MaybeDelivered: true, Err: errors.New("the answer was cut off")}
	case int64(len(answer)) > c.conf.MaxResponse:
		return r, resp.StatusCode, &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: "response_too_large", MaybeDelivered: true,
			Err: fmt.Errorf("the answer is longer than %d bytes", c.conf.MaxResponse),
		}
	}
	return holdfast.Receipt{ID: m.ID, State: holdfast.Delivered, Response: answer}, resp.StatusCode, nil
}

// cause is an error without the URL, which may hold a password or token.
func cause(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}

// refused classifies an answer that is no success.
func (c *Caller) refused(resp *http.Response) *holdfast.Failure {
	f := &holdfast.Failure{
		Code: fmt.Sprintf("http_%d", resp.StatusCode), RetryAfter: retryafter.Of(resp.Header),
		Err: fmt.Errorf("the endpoint answered %d", resp.StatusCode),
	}
	if c.conf.permanent(resp.StatusCode) {
		f.Outcome = holdfast.Permanent
	}
	if text := c.excerpt(resp.Body); text != "" {
		f.Err = fmt.Errorf("%w: %s", f.Err, text)
	}
	return f
}

// excerpt is the beginning of what the target says, on one line.
func (c *Caller) excerpt(body io.Reader) string {
	if c.conf.Excerpt <= 0 {
		return ""
	}
	raw, _ := io.ReadAll(io.LimitReader(body, int64(c.conf.Excerpt)+1)) // what came of it
	cut := len(raw) > c.conf.Excerpt
	if cut {
		raw = raw[:c.conf.Excerpt]
	}
	for cut && len(raw) > 0 && !utf8.Valid(raw[max(len(raw)-utf8.UTFMax, 0):]) {
		raw = raw[:len(raw)-1] // a character that was cut
	}
	if !utf8.Valid(raw) {
		return ""
	}
	text := strings.Join(strings.FieldsFunc(string(raw), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if cut {
		text += "…"
	}
	return text
}
