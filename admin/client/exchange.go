package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// maxAnswer bounds the bytes read of an answer: a page of the largest payloads.
const maxAnswer = 1 << 30

// do sends a request and decodes the answer into out. path is escaped already.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body []byte, out any) error {
	resp, err := c.roundTrip(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.problemOf(resp)
	}
	if out == nil {
		return nil
	}
	return decodeAnswer(resp, out)
}

func (c *Client) roundTrip(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Response, error) {
	target := c.base.String() + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	req.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, f := c.http.Do(req, nil)
	if f != nil {
		if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("%s %s: %w", method, path, ctx.Err())
		}
		err = f.Err
		if exchange.PlainFromTLS(err) {
			err = fmt.Errorf("%w: it speaks plain HTTP; write http:// instead of https://", ErrScheme)
		}
		return nil, fmt.Errorf("%w at %s: %w", ErrUnreachable, c.at, err)
	}
	return resp, nil
}

func decodeAnswer(resp *http.Response, out any) error {
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("%s %s: read the answer: %w", resp.Request.Method, resp.Request.URL.Path, err)
	}
	return nil
}

// problemOf reads a refusal. Something between us and the node may have written it.
func (c *Client) problemOf(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s %s: %s: read the answer: %w", resp.Request.Method, resp.Request.URL.Path, resp.Status, err)
	}
	if c.base.Scheme == "http" && exchange.PlainToTLS(resp.StatusCode, text) {
		return fmt.Errorf("%w at %s: %w: it does; write https:// instead of http://", ErrUnreachable, c.at, ErrScheme)
	}
	p := &api.Problem{}
	t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if t == api.ProblemType && json.Unmarshal(text, p) == nil && p.Detail != "" {
		p.Status = resp.StatusCode // a proxy may have changed it
		return p
	}
	return &api.Problem{
		Type: "about:blank", Title: http.StatusText(resp.StatusCode), Status: resp.StatusCode,
		Detail: fmt.Sprintf("%s %s: answered %s, and not by a Holdfast node: %q", resp.Request.Method, resp.Request.URL.Path,
			resp.Status, api.Clip(strings.TrimSpace(string(text)))),
	}
}

// get requests a T.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (answer T, err error) {
	err = c.do(ctx, http.MethodGet, path, query, nil, &answer)
	return answer, err
}

// send sends req as JSON, or no body if req is nil, and returns the T of the answer.
func send[T any](ctx context.Context, c *Client, method, path string, query url.Values, req any) (answer T, err error) {
	var body []byte
	if req != nil {
		if body, err = json.Marshal(req); err != nil {
			return answer, fmt.Errorf("encode %T: %w", req, err)
		}
	}
	err = c.do(ctx, method, path, query, body, &answer)
	return answer, err
}

// withRaw encodes req with raw as one of its fields, and keeps the caller's bytes of raw.
func withRaw(what string, req any, field string, raw json.RawMessage) ([]byte, error) {
	if raw != nil && !json.Valid(raw) {
		return nil, fmt.Errorf("%s: the %s is not JSON", what, field)
	}
	return api.Spliced(req, field, raw)
}
