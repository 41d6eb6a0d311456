package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Bulk offers bulk actions: one verb for all that a filter finds.
type Bulk struct{ c *Client }

// Bulk returns the bulk actions of the node.
func (c *Client) Bulk() Bulk { return Bulk{c} }

func bulkPath(id string) string { return "/v1/bulk/" + api.Segment(id) }

// Add makes an action of what a filter finds. A dry run only counts.
func (b Bulk) Add(ctx context.Context, req *api.BulkRequest) (api.Bulk, error) {
	return send[api.Bulk](ctx, b.c, http.MethodPost, "/v1/bulk", nil, req)
}

// List returns one page of actions, the newest first. after is the Next of the page before; limit zero is the
// node's default.
func (b Bulk) List(ctx context.Context, after string, limit int) (api.BulkPage, error) {
	return get[api.BulkPage](ctx, b.c, "/v1/bulk", paged(after, limit))
}

// Get returns one action.
func (b Bulk) Get(ctx context.Context, id string) (api.Bulk, error) {
	return get[api.Bulk](ctx, b.c, bulkPath(id), nil)
}

// Rows returns one page of what became of the rows of an action.
func (b Bulk) Rows(ctx context.Context, id string, after int64, limit int) (api.BulkRowPage, error) {
	from := ""
	if after > 0 {
		from = strconv.FormatInt(after, 10)
	}
	return get[api.BulkRowPage](ctx, b.c, bulkPath(id)+"/rows", paged(from, limit))
}

// Pause holds an action until Resume.
func (b Bulk) Pause(ctx context.Context, id string) (api.Bulk, error) {
	return send[api.Bulk](ctx, b.c, http.MethodPost, bulkPath(id)+"/pause", nil, nil)
}

// Resume lets a paused action go on.
func (b Bulk) Resume(ctx context.Context, id string) (api.Bulk, error) {
	return send[api.Bulk](ctx, b.c, http.MethodPost, bulkPath(id)+"/resume", nil, nil)
}

// Cancel ends an action. What is done stays done.
func (b Bulk) Cancel(ctx context.Context, id string) (api.Bulk, error) {
	return send[api.Bulk](ctx, b.c, http.MethodPost, bulkPath(id)+"/cancel", nil, nil)
}
