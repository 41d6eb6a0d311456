package client

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Journal offers the journal's followers.
type Journal struct{ c *Client }

// Journal returns the journal of the node.
func (c *Client) Journal() Journal { return Journal{c} }

// Followers returns all followers by name.
func (j Journal) Followers(ctx context.Context) ([]api.Follower, error) {
	list, err := get[api.FollowerList](ctx, j.c, "/v1/journal/followers", nil)
	return list.Followers, err
}

// Forget ends a follower, so that the journal is not kept for it. It ends one that runs in the node's
// process only with force.
func (j Journal) Forget(ctx context.Context, name string, force bool) error {
	return j.c.do(ctx, http.MethodDelete, "/v1/journal/followers/"+api.Segment(name), flag("force", force), nil, nil)
}
