package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
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

// InboxQuery narrows a list of received messages. Zero fields do not narrow.
type InboxQuery struct {
	Endpoint string
	After    int64 // KeptPage.Next of the page before
	Limit    int   // 1 to 500; zero: 50
}

// Send sends a message. It is safe to call again with the same ID when an
// error leaves open whether the message was taken.
func (c *Client) Send(ctx context.Context, m NewMessage) (Accepted, error) {
	var a Accepted
	raw := m.Payload
	m.Payload = nil
	if raw != nil && !json.Valid(raw) {
		return a, fmt.Errorf("send: the payload is not JSON")
	}
	body, err := spliced(m, "payload", raw)
	if err != nil {
		return a, err
	}
	err = c.do(ctx, http.MethodPost, "/v1/messages", nil, body, &a)
	return a, err
}

// Notify tells people. It is safe to call again with the same ID when an error
// leaves open whether the notification was taken.
func (c *Client) Notify(ctx context.Context, n NewNotification) (NotificationAccepted, error) {
	var a NotificationAccepted
	raw := n.Data
	n.Data = nil
	if raw != nil && !json.Valid(raw) {
		return a, fmt.Errorf("notify: the data is not JSON")
	}
	body, err := spliced(n, "data", raw)
	if err != nil {
		return a, err
	}
	err = c.do(ctx, http.MethodPost, "/v1/notifications", nil, body, &a)
	return a, err
}

// NotificationStatus says how a notification stands.
func (c *Client) NotificationStatus(ctx context.Context, id string) (NotificationStatus, error) {
	var s NotificationStatus
	err := c.do(ctx, http.MethodGet, "/v1/notifications/"+segment(id), nil, nil, &s)
	return s, err
}

// Message returns one message with its payload and history.
func (c *Client) Message(ctx context.Context, id string) (MessageDetail, error) {
	var d MessageDetail
	err := c.do(ctx, http.MethodGet, c.messages()+"/"+segment(id), nil, nil, &d)
	return d, err
}

// Messages returns one page of messages, newest first.
func (c *Client) Messages(ctx context.Context, q MessageQuery) (MessagePage, error) {
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
	var p MessagePage
	err := c.do(ctx, http.MethodGet, c.messages(), query, nil, &p)
	return p, err
}

// Failed returns one page of parked messages, newest first.
func (c *Client) Failed(ctx context.Context, after string, limit int) (MessagePage, error) {
	var p MessagePage
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
func (c *Client) Retry(ctx context.Context, id string, r RetryRequest) (Message, error) {
	var m Message
	body, err := json.Marshal(r)
	if err != nil {
		return m, fmt.Errorf("encode retry: %w", err)
	}
	err = c.do(ctx, http.MethodPost, c.messages()+"/"+segment(id)+"/retry", nil, body, &m)
	return m, err
}

// Run makes a pending message due at once.
func (c *Client) Run(ctx context.Context, id string) (Message, error) {
	var m Message
	err := c.do(ctx, http.MethodPost, c.messages()+"/"+segment(id)+"/run", nil, nil, &m)
	return m, err
}

// Reschedule says when a pending message is tried next.
func (c *Client) Reschedule(ctx context.Context, id string, r RescheduleRequest) (Message, error) {
	var m Message
	err := c.ask(ctx, http.MethodPost, c.messages()+"/"+segment(id)+"/reschedule", r, &m)
	return m, err
}

// Discard gives up a message that is not delivered; one that is being tried ends
// with that attempt.
func (c *Client) Discard(ctx context.Context, id string) (Message, error) {
	var m Message
	err := c.do(ctx, http.MethodPost, c.messages()+"/"+segment(id)+"/discard", nil, nil, &m)
	return m, err
}

// Inbox returns one page of received messages that wait, oldest first.
func (c *Client) Inbox(ctx context.Context, q InboxQuery) (KeptPage, error) {
	after := ""
	if q.After != 0 {
		after = strconv.FormatInt(q.After, 10)
	}
	query := paging(after, q.Limit)
	if q.Endpoint != "" {
		query.Set("endpoint", q.Endpoint)
	}
	var p KeptPage
	err := c.do(ctx, http.MethodGet, "/v1/inbox", query, nil, &p)
	return p, err
}

// Done marks a received message done; calling it again with the same response
// is no error.
func (c *Client) Done(ctx context.Context, id string, r DoneRequest) (Done, error) {
	var d Done
	raw := r.Response
	r.Response = nil
	if raw != nil && !json.Valid(raw) {
		return d, fmt.Errorf("done: the response is not JSON")
	}
	body, err := spliced(r, "response", raw)
	if err != nil {
		return d, err
	}
	err = c.do(ctx, http.MethodPost, "/v1/inbox/"+segment(id)+"/done", nil, body, &d)
	return d, err
}
