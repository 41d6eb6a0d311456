package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// MessageQuery narrows a list of messages. Zero fields do not narrow.
type MessageQuery struct {
	States      []string
	Destination string
	Category    string // excludes Destination
	Held        bool   // only those with a HeldUntil
	After       string // MessagePage.Next of the page before
	Limit       int    // 1 to 500; zero: 50
}

// Send sends a message. It is safe to call again with the same ID when an
// error leaves open whether the message was taken.
func (c *Client) Send(ctx context.Context, m api.NewMessage) (api.Accepted, error) {
	var a api.Accepted
	raw := m.Payload
	m.Payload = nil
	if raw != nil && !json.Valid(raw) {
		return a, fmt.Errorf("send: the payload is not JSON")
	}
	body, err := api.Spliced(m, "payload", raw)
	if err != nil {
		return a, err
	}
	err = c.do(ctx, http.MethodPost, "/v1/messages", nil, body, &a)
	return a, err
}

// Message returns one message with its payload and history.
func (c *Client) Message(ctx context.Context, id string) (api.MessageDetail, error) {
	var d api.MessageDetail
	err := c.do(ctx, http.MethodGet, c.messages()+"/"+api.Segment(id), nil, nil, &d)
	return d, err
}

// Messages returns one page of messages, newest first.
func (c *Client) Messages(ctx context.Context, q MessageQuery) (api.MessagePage, error) {
	query := paging(q.After, q.Limit)
	for _, s := range q.States {
		query.Add("state", s)
	}
	if q.Destination != "" {
		query.Set("destination", q.Destination)
	}
	if q.Category != "" {
		query.Set("category", q.Category)
	}
	if q.Held {
		query.Set("held", "true")
	}
	var p api.MessagePage
	err := c.do(ctx, http.MethodGet, c.messages(), query, nil, &p)
	return p, err
}

// Failed returns one page of parked messages, newest first.
func (c *Client) Failed(ctx context.Context, after string, limit int) (api.MessagePage, error) {
	var p api.MessagePage
	err := c.do(ctx, http.MethodGet, "/_rf/outbox/failed", paging(after, limit), nil, &p)
	return p, err
}

func paging(after string, limit int) url.Values {
	query := url.Values{}
	if after != "" {
		query.Set("after", after)
	}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return query
}

// Retry starts a new cycle of a parked, expired or discarded message.
func (c *Client) Retry(ctx context.Context, id string, r api.RetryRequest) (api.Message, error) {
	var m api.Message
	body, err := json.Marshal(r)
	if err != nil {
		return m, fmt.Errorf("encode retry: %w", err)
	}
	err = c.do(ctx, http.MethodPost, c.messages()+"/"+api.Segment(id)+"/retry", nil, body, &m)
	return m, err
}

// Run makes a pending message due at once.
func (c *Client) Run(ctx context.Context, id string) (api.Message, error) {
	var m api.Message
	err := c.do(ctx, http.MethodPost, c.messages()+"/"+api.Segment(id)+"/run", nil, nil, &m)
	return m, err
}

// Reschedule says when a pending message is tried next.
func (c *Client) Reschedule(ctx context.Context, id string, r api.RescheduleRequest) (api.Message, error) {
	var m api.Message
	err := c.ask(ctx, http.MethodPost, c.messages()+"/"+api.Segment(id)+"/reschedule", r, &m)
	return m, err
}

// Discard gives up a message that is not delivered; one that is being tried ends
// with that attempt.
func (c *Client) Discard(ctx context.Context, id string) (api.Message, error) {
	var m api.Message
	err := c.do(ctx, http.MethodPost, c.messages()+"/"+api.Segment(id)+"/discard", nil, nil, &m)
	return m, err
}
