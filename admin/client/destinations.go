package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Destinations offers the destinations of messages with their lanes.
type Destinations struct{ c *Client }

// Destinations returns the destinations of the node.
func (c *Client) Destinations() Destinations { return Destinations{c} }

// List returns the destinations with their lanes.
func (d Destinations) List(ctx context.Context) ([]api.DestinationStatus, error) {
	list, err := get[api.DestinationList](ctx, d.c, "/v1/destinations", nil)
	return list.Destinations, err
}

// Get returns one destination.
func (d Destinations) Get(ctx context.Context, name string) (api.DestinationStatus, error) {
	return get[api.DestinationStatus](ctx, d.c, destinationPath(name), nil)
}

// Pause stops new attempts at a destination.
func (d Destinations) Pause(ctx context.Context, name string) (api.DestinationStatus, error) {
	return send[api.DestinationStatus](ctx, d.c, http.MethodPost, destinationPath(name)+"/pause", nil, nil)
}

// Resume ends a pause. The destination is tried at once.
func (d Destinations) Resume(ctx context.Context, name string) (api.DestinationStatus, error) {
	return send[api.DestinationStatus](ctx, d.c, http.MethodPost, destinationPath(name)+"/resume", nil, nil)
}

func destinationPath(name string) string { return "/v1/destinations/" + url.PathEscape(name) }
