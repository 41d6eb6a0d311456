// Package httpcall delivers a message by calling a foreign HTTP API: the payload is the body, the
// message id is the Idempotency-Key, and the body of the answer becomes the response.
//
// It promises that an outcome is classified only by type and status code, that an attempt is one
// request, and that redirects are not followed. It reads no more of an answer than it keeps. No
// secret appears in an error, even if the target quotes our credential. A success stays a success
// whatever its body is. The response is returned to the caller unchanged.
//
// A call may reach its target twice, in two attempts. A target that must not act twice uses the
// key.
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

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// Caller calls one API. Use New; the zero value is not usable. A Caller may be used concurrently.
type Caller struct {
	conf   Config
	client *exchange.Client
}

var _ holdfast.Deliverer = (*Caller)(nil)

// New returns a Caller.
func New(c Config) (*Caller, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Method, c.MaxResponse = cmp.Or(c.Method, http.MethodPost), cmp.Or(c.MaxResponse, MaxResponse)
	client, err := newClient(c.TLS, c.Addresses, cmp.Or(c.Connections, 32))
	if err != nil {
		return nil, err
	}
	return &Caller{conf: c, client: client}, nil
}

// Close closes idle connections.
func (c *Caller) Close() {
	c.client.Close()
	if c.conf.Auth != nil {
		c.conf.Auth.close()
	}
}

// Deliver makes one call. If the target refuses a token that may have been withdrawn, it makes a
// second one.
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
				Outcome: holdfast.LaneFault, Code: "credentials_refused", Err: fmt.Errorf("our credentials are refused: %w", err),
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
	trace := holdfast.TraceOf(m.Headers)
	for name, value := range m.Headers { // names may differ only in case; HTTP then repeats the header
		if trace.Parent != "" && (name == holdfast.HeaderTraceParent || name == holdfast.HeaderTraceState) {
			continue
		}
		h.Add("Holdfast-Header-"+url.QueryEscape(name), url.QueryEscape(value))
	}
	trace.Each(h.Set)
	return h
}

// call makes one exchange. The status is zero if there was no answer.
func (c *Caller) call(ctx context.Context, m *holdfast.Message, h http.Header) (r holdfast.Receipt, status int, err error) {
	var body io.Reader
	if c.conf.Method != http.MethodGet && c.conf.Method != http.MethodHead {
		body = bytes.NewReader(m.Payload)
	}
	target, err := c.conf.target(m.Endpoint, string(m.ID))
	if err != nil {
		return r, 0, &holdfast.Failure{Outcome: holdfast.Permanent, Code: "bad_name", Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, c.conf.Method, target, body)
	if err != nil {
		return r, 0, &holdfast.Failure{Outcome: holdfast.Permanent, Code: "bad_request", Err: errors.New("the call cannot be made: its method or its URL is invalid")}
	}
	req.Header = h
	if host := h.Get("Host"); host != "" {
		req.Host = host
	}
	resp, fail := c.client.Do(req, func() *secrets.Set { return c.hidden(h) }) // the error may quote what the target sent
	if fail != nil {
		return r, 0, fail
	}
	defer resp.Body.Close() //nolint:errcheck // the answer has been read, or is given up
	if !c.conf.succeeds(resp.StatusCode) {
		return r, resp.StatusCode, c.refused(resp, h)
	}
	// The status has decided. A fault of the body is no reason to call again.
	r = holdfast.Receipt{ID: m.ID, State: holdfast.Delivered}
	switch answer, err := io.ReadAll(io.LimitReader(resp.Body, c.conf.MaxResponse+1)); {
	case err != nil:
		r.Note = fmt.Sprintf("the endpoint answered %d; the rest of its answer was cut off after %d bytes, and is not kept", resp.StatusCode, len(answer))
	case int64(len(answer)) > c.conf.MaxResponse:
		r.Note = fmt.Sprintf("the endpoint answered %d; its answer is longer than %d bytes, and is not kept", resp.StatusCode, c.conf.MaxResponse)
	default:
		if r.Response = answer; c.conf.Answer > 0 {
			r.Answer = []byte(c.hidden(h).Clean(string(answer)))
		}
	}
	return r, resp.StatusCode, nil
}
