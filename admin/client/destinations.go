package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Destinations lists the destinations with their lanes.
func (c *Client) Destinations(ctx context.Context) ([]api.DestinationStatus, error) {
	var list api.DestinationList
	err := c.do(ctx, http.MethodGet, "/v1/destinations", nil, nil, &list)
	return list.Destinations, err
}

// Destination shows one destination.
func (c *Client) Destination(ctx context.Context, name string) (d api.DestinationStatus, err error) {
	err = c.do(ctx, http.MethodGet, "/v1/destinations/"+url.PathEscape(name), nil, nil, &d)
	return d, err
}

// PauseDestination has nothing more begun at a destination.
func (c *Client) PauseDestination(ctx context.Context, name string) (d api.DestinationStatus, err error) {
	err = c.do(ctx, http.MethodPost, "/v1/destinations/"+url.PathEscape(name)+"/pause", nil, nil, &d)
	return d, err
}

// ResumeDestination ends a pause, and has a destination tried at once.
func (c *Client) ResumeDestination(ctx context.Context, name string) (d api.DestinationStatus, err error) {
	err = c.do(ctx, http.MethodPost, "/v1/destinations/"+url.PathEscape(name)+"/resume", nil, nil, &d)
	return d, err
}
