package admin

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/socket"
)

// ErrUnreachable is wrapped by the error of a request that found no node.
var ErrUnreachable = errors.New("cannot reach the node")

// ErrScheme is wrapped beside it where only one side speaks TLS.
var ErrScheme = errors.New("only one side speaks TLS")

// Client asks a node. Its methods may be called concurrently; they return a
// *Problem where the node refuses, and wrap ErrUnreachable where it does not
// answer. They set no deadline of their own: the context does.
type Client struct {
	base  *url.URL
	at    string // as it was given, for errors
	token string
	conf  exchange.Settings
	http  *exchange.Client

	outbox string // path of a site's messages; empty: the node's own
}

// maxAnswer bounds what is read of an answer: a page of the largest payloads.
const maxAnswer = 1 << 30

// NewClient returns a client of the node at address: http://host:port,
// https://host:port, or unix:///path/of/socket. The token may be empty; it is
// sent over http:// to this machine only.
func NewClient(address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("node address %q: %w", address, errors.Unwrap(err))
	}
	conf := exchange.Settings{Connect: 30 * time.Second, Idle: 2, Proxies: true}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("node address %q: must end after its path, and name no user", u.Redacted())
	}
	path, isSocket := socket.Path(u)
	switch {
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		u.Path = strings.TrimSuffix(u.Path, "/")
	case isSocket:
		conf.Proxies = false
		conf.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		u = &url.URL{Scheme: "http", Host: "localhost"}
	default:
		return nil, fmt.Errorf("node address %q: must be http://host:port, https://host:port or unix:///path/of/socket", address)
	}
	if token != "" && !wellFormed(token) {
		return nil, errors.New("the token is mistyped or cut short: it begins with hf_ and has 52 characters")
	}
	if token != "" && u.Scheme == "http" && !isSocket && !isLoopback(u.Hostname()) {
		return nil, fmt.Errorf("node address %q: a token would go there in clear, for everybody on the way; use https:// or a tunnel to the node's loopback", address)
	}
	return &Client{base: u, at: address, token: token, conf: conf, http: exchange.NewClient(conf)}, nil
}

// isLoopback does not resolve names: whoever answers for one could change it.
func isLoopback(host string) bool {
	if host = strings.ToLower(host); host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// WithTLS returns a client that uses conf towards a node of https.
func (c *Client) WithTLS(conf *tls.Config) *Client {
	own := *c
	own.conf.TLS = conf
	own.http = exchange.NewClient(own.conf)
	return &own
}

// Close closes idle connections.
func (c *Client) Close() { c.http.Close() }

// do asks, and decodes the answer into out. path is escaped already.
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
			err = fmt.Errorf("%w: it speaks plain HTTP; write http:// in place of https://", ErrScheme)
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

// problemOf reads a refusal, also one that something between us and the node
// has written.
func (c *Client) problemOf(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s %s: %s: read the answer: %w", resp.Request.Method, resp.Request.URL.Path, resp.Status, err)
	}
	if c.base.Scheme == "http" && exchange.PlainToTLS(resp.StatusCode, text) {
		return fmt.Errorf("%w at %s: %w: it does; write https:// in place of http://", ErrUnreachable, c.at, ErrScheme)
	}
	p := &Problem{}
	t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if t == problemType && json.Unmarshal(text, p) == nil && p.Detail != "" {
		p.Status = resp.StatusCode // a proxy may have changed it
		return p
	}
	return &Problem{
		Type: "about:blank", Title: http.StatusText(resp.StatusCode), Status: resp.StatusCode,
		Detail: fmt.Sprintf("%s %s: answered %s, and not by a Holdfast node: %q", resp.Request.Method, resp.Request.URL.Path,
			resp.Status, clip(strings.TrimSpace(string(text)))),
	}
}

// Health asks how the node fares. A node that is failing is no error.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	resp, err := c.roundTrip(ctx, http.MethodGet, "/_rf/health", nil, nil)
	if err != nil {
		return h, err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK && (resp.StatusCode != http.StatusServiceUnavailable || t != "application/json") {
		return h, c.problemOf(resp)
	}
	err = decodeAnswer(resp, &h)
	return h, err
}

// OutboxStats returns the numbers of the outbox.
func (c *Client) OutboxStats(ctx context.Context) (OutboxStats, error) {
	var s OutboxStats
	err := c.do(ctx, http.MethodGet, "/_rf/outbox/stats", nil, nil, &s)
	return s, err
}

// InboxStats returns the numbers of the inbox.
func (c *Client) InboxStats(ctx context.Context) (InboxStats, error) {
	var s InboxStats
	err := c.do(ctx, http.MethodGet, "/_rf/inbox/stats", nil, nil, &s)
	return s, err
}

// Destinations lists the destinations with their lanes.
func (c *Client) Destinations(ctx context.Context) ([]DestinationStatus, error) {
	var list DestinationList
	err := c.do(ctx, http.MethodGet, "/v1/destinations", nil, nil, &list)
	return list.Destinations, err
}

// Destination shows one destination.
func (c *Client) Destination(ctx context.Context, name string) (d DestinationStatus, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/destinations/"+url.PathEscape(name), nil, nil, &d)
	return d, err
}

// PauseDestination has nothing more begun at a destination.
func (c *Client) PauseDestination(ctx context.Context, name string) (d DestinationStatus, err error) {
	err = c.do(ctx, http.MethodPost, "/v1/destinations/"+url.PathEscape(name)+"/pause", nil, nil, &d)
	return d, err
}

// ResumeDestination ends a pause, and has a destination tried at once.
func (c *Client) ResumeDestination(ctx context.Context, name string) (d DestinationStatus, err error) {
	err = c.do(ctx, http.MethodPost, "/v1/destinations/"+url.PathEscape(name)+"/resume", nil, nil, &d)
	return d, err
}

// Backup makes the node write a copy of its database into a folder of its
// machine. It takes as long as the database is large.
func (c *Client) Backup(ctx context.Context, folder string) (Backup, error) {
	var made Backup
	body, err := json.Marshal(NewBackup{folder})
	if err != nil {
		return made, fmt.Errorf("encode backup: %w", err)
	}
	err = c.do(ctx, http.MethodPost, "/v1/backups", nil, body, &made)
	return made, err
}

// AcknowledgeHistory says that people know that the database has another history.
func (c *Client) AcknowledgeHistory(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/v1/history/acknowledge", nil, nil, nil)
}

// Tokens lists the tokens.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	var list TokenList
	err := c.do(ctx, http.MethodGet, "/v1/tokens", nil, nil, &list)
	return list.Tokens, err
}

// CreateToken makes a token; its secret is in the answer, this once.
func (c *Client) CreateToken(ctx context.Context, t NewToken) (CreatedToken, error) {
	var created CreatedToken
	body, err := json.Marshal(t)
	if err != nil {
		return created, fmt.Errorf("encode token: %w", err)
	}
	err = c.do(ctx, http.MethodPost, "/v1/tokens", nil, body, &created)
	return created, err
}

// DeleteToken ends a token. The last one with the role admin is kept unless
// force is said.
func (c *Client) DeleteToken(ctx context.Context, name string, force bool) error {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	return c.do(ctx, http.MethodDelete, "/v1/tokens/"+segment(name), query, nil, nil)
}
