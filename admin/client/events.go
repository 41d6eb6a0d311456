package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Topics offers the topics of events.
type Topics struct{ c *Client }

// Topics returns the topics of the node.
func (c *Client) Topics() Topics { return Topics{c} }

func topicPath(name string) string { return "/v1/topics/" + api.Segment(name) }

// List returns the topics by name.
func (t Topics) List(ctx context.Context) ([]api.Topic, error) {
	all, err := get[api.TopicList](ctx, t.c, "/v1/topics", nil)
	return all.Topics, err
}

// Get returns one topic.
func (t Topics) Get(ctx context.Context, name string) (api.Topic, error) {
	return get[api.Topic](ctx, t.c, topicPath(name), nil)
}

// Put makes or replaces a topic. With a Version it replaces only that version.
func (t Topics) Put(ctx context.Context, name string, spec api.TopicSpec) (api.Topic, error) {
	return send[api.Topic](ctx, t.c, http.MethodPut, topicPath(name), nil, spec)
}

// Check does what Put would do but for storing it: the answer has a version only if nothing would change.
func (t Topics) Check(ctx context.Context, name string, spec api.TopicSpec) (api.Topic, error) {
	return send[api.Topic](ctx, t.c, http.MethodPut, topicPath(name), dryRun(), spec)
}

// Delete removes a topic.
func (t Topics) Delete(ctx context.Context, name string) error {
	return t.c.do(ctx, http.MethodDelete, topicPath(name), nil, nil, nil)
}

// Subscriptions offers the subscriptions to events.
type Subscriptions struct{ c *Client }

// Subscriptions returns the subscriptions of the node.
func (c *Client) Subscriptions() Subscriptions { return Subscriptions{c} }

func subscriptionPath(id string) string { return "/v1/subscriptions/" + api.Segment(id) }

// paged returns the query of a page; zero values are left out.
func paged(after string, limit int) url.Values {
	query := url.Values{}
	if after != "" {
		query.Set("after", after)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return query
}

// List returns a page of subscriptions by id. after is Next of the page before, and limit zero the node's.
func (s Subscriptions) List(ctx context.Context, after string, limit int) (api.SubscriptionPage, error) {
	return get[api.SubscriptionPage](ctx, s.c, "/v1/subscriptions", paged(after, limit))
}

// Get returns one subscription.
func (s Subscriptions) Get(ctx context.Context, id string) (api.Subscription, error) {
	return get[api.Subscription](ctx, s.c, subscriptionPath(id), nil)
}

// Create makes a subscription, with a new id unless it has one.
func (s Subscriptions) Create(ctx context.Context, spec api.SubscriptionSpec) (api.Subscription, error) {
	return send[api.Subscription](ctx, s.c, http.MethodPost, "/v1/subscriptions", nil, spec)
}

// Put makes or replaces a subscription. With a Version it replaces only that version.
func (s Subscriptions) Put(ctx context.Context, id string, spec api.SubscriptionSpec) (api.Subscription, error) {
	return send[api.Subscription](ctx, s.c, http.MethodPut, subscriptionPath(id), nil, spec)
}

// Check does what Put would do but for storing it: the answer has a version only if nothing would change.
func (s Subscriptions) Check(ctx context.Context, id string, spec api.SubscriptionSpec) (api.Subscription, error) {
	return send[api.Subscription](ctx, s.c, http.MethodPut, subscriptionPath(id), dryRun(), spec)
}

func dryRun() url.Values { return url.Values{"dryRun": {"true"}} }

// Delete removes a subscription.
func (s Subscriptions) Delete(ctx context.Context, id string) error {
	return s.c.do(ctx, http.MethodDelete, subscriptionPath(id), nil, nil, nil)
}

// RotateSecret gives a subscription a new secret. overlap is how long former ones go on to sign, such as 24h; empty: as
// the node does.
func (s Subscriptions) RotateSecret(ctx context.Context, id, overlap string) (api.RotatedSecret, error) {
	return send[api.RotatedSecret](ctx, s.c, http.MethodPost, subscriptionPath(id)+"/rotate-secret", nil, api.SecretRotation{Overlap: overlap})
}

// Pause lets the messages of a subscription wait.
func (s Subscriptions) Pause(ctx context.Context, id, reason string) (api.Subscription, error) {
	return s.decide(ctx, id, "pause", reason)
}

// Resume sends what waits.
func (s Subscriptions) Resume(ctx context.Context, id, reason string) (api.Subscription, error) {
	return s.decide(ctx, id, "resume", reason)
}

// Disable is Pause that takes no new messages either.
func (s Subscriptions) Disable(ctx context.Context, id, reason string) (api.Subscription, error) {
	return s.decide(ctx, id, "disable", reason)
}

func (s Subscriptions) decide(ctx context.Context, id, verb, reason string) (api.Subscription, error) {
	return send[api.Subscription](ctx, s.c, http.MethodPost, subscriptionPath(id)+"/"+verb, nil, api.StateChange{Reason: reason})
}

// Test sends the subscriber an event that is not stored, and returns what it answered.
func (s Subscriptions) Test(ctx context.Context, id string, e api.NewEvent) (api.TestExchange, error) {
	return sendEvent[api.TestExchange](ctx, s.c, subscriptionPath(id)+"/test", e)
}

// Events offers what programs publish.
type Events struct{ c *Client }

// Events returns the events of the node.
func (c *Client) Events() Events { return Events{c} }

// Publish stores an event. Without an id, an event that is sent again is a new one.
func (e Events) Publish(ctx context.Context, n api.NewEvent) (api.EventAccepted, error) {
	return sendEvent[api.EventAccepted](ctx, e.c, "/v1/events", n)
}

// sendEvent keeps the bytes of the event's data.
func sendEvent[T any](ctx context.Context, c *Client, path string, e api.NewEvent) (answer T, err error) {
	data := e.Data
	e.Data = nil
	body, err := withRaw("event", e, "data", data)
	if err == nil {
		err = c.do(ctx, http.MethodPost, path, nil, body, &answer)
	}
	return answer, err
}

// List returns a page of events, newest first; topic empty: of all.
func (e Events) List(ctx context.Context, topic, after string, limit int) (api.EventPage, error) {
	query := paged(after, limit)
	if topic != "" {
		query.Set("topic", topic)
	}
	return get[api.EventPage](ctx, e.c, "/v1/events", query)
}

// Get returns an event with what became of it. source may be empty if only one has sent the id.
func (e Events) Get(ctx context.Context, source, id, after string) (api.EventDetail, error) {
	return get[api.EventDetail](ctx, e.c, "/v1/events/"+api.Segment(id), of(source, paged(after, 0)))
}

// Explain says of a page of subscriptions why each got an event or not.
func (e Events) Explain(ctx context.Context, source, id, after string, limit int) (api.EventExplanation, error) {
	return get[api.EventExplanation](ctx, e.c, "/v1/events/"+api.Segment(id)+"/explain", of(source, paged(after, limit)))
}

// Resend sends an event again. source may be empty if only one has sent the id.
func (e Events) Resend(ctx context.Context, source, id string, r api.ResendRequest) (api.Resent, error) {
	return send[api.Resent](ctx, e.c, http.MethodPost, "/v1/events/"+api.Segment(id)+"/resend", of(source, url.Values{}), r)
}

func of(source string, query url.Values) url.Values {
	if source != "" {
		query.Set("source", source)
	}
	return query
}
