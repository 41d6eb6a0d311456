package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Channels lists the channels with how they fare.
func (c *Client) Channels(ctx context.Context) ([]api.Channel, error) {
	var list api.ChannelList
	err := c.do(ctx, http.MethodGet, "/v1/channels", nil, nil, &list)
	return list.Channels, err
}

// Channel returns one channel.
func (c *Client) Channel(ctx context.Context, name string) (api.Channel, error) {
	var one api.Channel
	err := c.do(ctx, http.MethodGet, "/v1/channels/"+api.Segment(name), nil, nil, &one)
	return one, err
}

// PutChannel makes or replaces a channel. With a Version it replaces only the
// one that was seen.
func (c *Client) PutChannel(ctx context.Context, name string, spec api.ChannelSpec) (api.Channel, error) {
	var one api.Channel
	err := c.ask(ctx, http.MethodPut, "/v1/channels/"+api.Segment(name), spec, &one)
	return one, err
}

// DeleteChannel ends a channel; by force also while it is needed.
func (c *Client) DeleteChannel(ctx context.Context, name string, force bool) error {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	return c.do(ctx, http.MethodDelete, "/v1/channels/"+api.Segment(name), query, nil, nil)
}

// ResumeChannel lets a held channel go on at once.
func (c *Client) ResumeChannel(ctx context.Context, name string) (api.Channel, error) {
	var one api.Channel
	err := c.do(ctx, http.MethodPost, "/v1/channels/"+api.Segment(name)+"/resume", nil, nil, &one)
	return one, err
}

// TestChannel sends a notification of its own. That it was refused is no
// error: the result says so.
func (c *Client) TestChannel(ctx context.Context, name, address string) (api.TestResult, error) {
	var r api.TestResult
	err := c.ask(ctx, http.MethodPost, "/v1/channels/"+api.Segment(name)+"/test", api.TestRequest{Address: address}, &r)
	return r, err
}
