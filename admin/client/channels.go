package client

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Channels offers the channels that bring notifications to people.
type Channels struct{ c *Client }

// Channels returns the channels of the node.
func (c *Client) Channels() Channels { return Channels{c} }

func channelPath(name string) string { return "/v1/channels/" + api.Segment(name) }

// List returns the channels with how they fare.
func (h Channels) List(ctx context.Context) ([]api.Channel, error) {
	list, err := get[api.ChannelList](ctx, h.c, "/v1/channels", nil)
	return list.Channels, err
}

// Get returns one channel.
func (h Channels) Get(ctx context.Context, name string) (api.Channel, error) {
	return get[api.Channel](ctx, h.c, channelPath(name), nil)
}

// Put makes or replaces a channel. With a Version it replaces only that version.
func (h Channels) Put(ctx context.Context, name string, spec api.ChannelSpec) (api.Channel, error) {
	return send[api.Channel](ctx, h.c, http.MethodPut, channelPath(name), nil, spec)
}

// Delete removes a channel. force removes it even if it is needed.
func (h Channels) Delete(ctx context.Context, name string, force bool) error {
	return h.c.do(ctx, http.MethodDelete, channelPath(name), flag("force", force), nil, nil)
}

// Resume makes a held channel go on at once.
func (h Channels) Resume(ctx context.Context, name string) (api.Channel, error) {
	return send[api.Channel](ctx, h.c, http.MethodPost, channelPath(name)+"/resume", nil, nil)
}

// Test sends a test notification. If the channel refuses it, that is not an error: the result says so.
func (h Channels) Test(ctx context.Context, name, address string) (api.TestResult, error) {
	return send[api.TestResult](ctx, h.c, http.MethodPost, channelPath(name)+"/test", nil, api.TestRequest{Address: address})
}
