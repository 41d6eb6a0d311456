package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Keys offers the keys that secrets in the node's database are sealed with.
type Keys struct{ c *Client }

// Keys returns the keys of the node.
func (c *Client) Keys() Keys { return Keys{c} }

// List returns the keys, with what is sealed with each.
func (k Keys) List(ctx context.Context) (api.KeyList, error) {
	return get[api.KeyList](ctx, k.c, "/v1/keys", nil)
}

// Rotate seals a page of secrets of about limit rows with the newest key. after is the Next of the
// page before; empty: it begins. Repeating it does no harm.
func (k Keys) Rotate(ctx context.Context, after string, limit int) (api.KeyRotation, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if after != "" {
		q.Set("after", after)
	}
	return send[api.KeyRotation](ctx, k.c, http.MethodPost, "/v1/keys/rotate", q, nil)
}
