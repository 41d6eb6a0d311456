package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Schedule returns the schedule of subscriptions without one of their own.
func (c *Client) Schedule(ctx context.Context) (api.UsualSchedule, error) {
	return get[api.UsualSchedule](ctx, c, "/v1/schedule", nil)
}

// SetSchedule replaces it. With a Version it replaces only that version.
func (c *Client) SetSchedule(ctx context.Context, spec api.UsualScheduleSpec) (api.UsualSchedule, error) {
	return send[api.UsualSchedule](ctx, c, http.MethodPut, "/v1/schedule", nil, spec)
}

// ResetSchedule gives up the schedule that an operator has set: that of each node's configuration holds again. apply
// is for what it counts: next or waiting; empty: next.
func (c *Client) ResetSchedule(ctx context.Context, apply string) (api.UsualSchedule, error) {
	query := url.Values{}
	if apply != "" {
		query.Set("apply", apply)
	}
	return send[api.UsualSchedule](ctx, c, http.MethodDelete, "/v1/schedule", query, nil)
}
