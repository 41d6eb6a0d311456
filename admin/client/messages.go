package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Messages offers the messages of an outbox: the node's own, or a site's (Client.At).
type Messages struct {
	c    *Client
	path string
}

// Messages returns the messages of the client's outbox.
func (c *Client) Messages() Messages {
	if c.outbox == "" {
		return Messages{c, "/v1/messages"}
	}
	return Messages{c, c.outbox}
}

// MessageQuery narrows a list of messages. Zero fields do not narrow.
type MessageQuery struct {
	States      []string
	Destination string
	Category    string // excludes Destination
	Held        bool   // only messages with a HeldUntil

	// A site knows none of these.
	ID, Endpoint, Key, Correlation, Event, Topic string    // ID: a part of it, or a whole UUID
	From, To                                     time.Time // time of acceptance; To is excluded
	Code, Error                                  string    // of the last error: its code, and words of it
	Grep                                         string    // words of headers and payload
	Cause                                        string    // api.Cause.ID
	Count                                        int       // count what is found, up to so many; zero: do not

	After string // MessagePage.Next of the previous page
	Limit int    // 1 to 500; zero: 50
}

// values returns the query as parameters.
func (q *MessageQuery) values() url.Values {
	query := paging(q.After, q.Limit)
	for _, s := range q.States {
		query.Add("state", s)
	}
	for name, value := range map[string]string{
		"destination": q.Destination, "category": q.Category, "id": q.ID, "endpoint": q.Endpoint, "key": q.Key, "correlation": q.Correlation,
		"event": q.Event, "topic": q.Topic, "code": q.Code, "error": q.Error, "grep": q.Grep, "cause": q.Cause,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !t.IsZero() {
			query.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Held {
		query.Set("held", "true")
	}
	if q.Count != 0 {
		query.Set("count", strconv.Itoa(q.Count))
	}
	return query
}

// Send sends a message from the node itself, even through the client of a site. If an error leaves open
// whether the message was taken, it is safe to call Send again with the same ID.
func (m Messages) Send(ctx context.Context, n api.NewMessage) (a api.Accepted, err error) {
	raw := n.Payload
	n.Payload = nil
	body, err := withRaw("send", n, "payload", raw)
	if err != nil {
		return a, err
	}
	err = m.c.do(ctx, http.MethodPost, "/v1/messages", nil, body, &a)
	return a, err
}

// Get returns one message with its payload and history.
func (m Messages) Get(ctx context.Context, id string) (api.MessageDetail, error) {
	return get[api.MessageDetail](ctx, m.c, m.path+"/"+api.Segment(id), nil)
}

// List returns one page of messages, newest first.
func (m Messages) List(ctx context.Context, q MessageQuery) (api.MessagePage, error) {
	return get[api.MessagePage](ctx, m.c, m.path, q.values())
}

// CauseQuery narrows the messages whose causes are listed. Zero fields do not narrow.
type CauseQuery struct {
	Destination, Category string
	Within                time.Duration // how long the node looks at messages; zero: 200 ms; at most 10 s
}

// Causes groups the node's own parked messages by why they are parked.
func (m Messages) Causes(ctx context.Context, q CauseQuery) (api.CauseList, error) {
	query := url.Values{}
	for name, value := range map[string]string{"destination": q.Destination, "category": q.Category} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Within > 0 {
		query.Set("within", q.Within.String())
	}
	return get[api.CauseList](ctx, m.c, "/v1/parked", query)
}

// Failed returns one page of the node's own parked messages, newest first.
func (m Messages) Failed(ctx context.Context, after string, limit int) (api.MessagePage, error) {
	return get[api.MessagePage](ctx, m.c, "/_rf/outbox/failed", paging(after, limit))
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
func (m Messages) Retry(ctx context.Context, id string, r api.RetryRequest) (api.Message, error) {
	return m.decide(ctx, id, "/retry", r)
}

// Run makes a pending message due at once.
func (m Messages) Run(ctx context.Context, id string) (api.Message, error) {
	return m.decide(ctx, id, "/run", nil)
}

// Reschedule sets when a pending message is tried next.
func (m Messages) Reschedule(ctx context.Context, id string, r api.RescheduleRequest) (api.Message, error) {
	return m.decide(ctx, id, "/reschedule", r)
}

// Discard gives up a message that is not delivered. A message that is being tried ends with that attempt.
func (m Messages) Discard(ctx context.Context, id string) (api.Message, error) {
	return m.decide(ctx, id, "/discard", nil)
}

func (m Messages) decide(ctx context.Context, id, verb string, req any) (api.Message, error) {
	return send[api.Message](ctx, m.c, http.MethodPost, m.path+"/"+api.Segment(id)+verb, nil, req)
}
