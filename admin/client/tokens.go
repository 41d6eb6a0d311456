package client

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Tokens offers the tokens that give access to the API.
type Tokens struct{ c *Client }

// Tokens returns the tokens of the node.
func (c *Client) Tokens() Tokens { return Tokens{c} }

// List returns the tokens, without their secrets.
func (t Tokens) List(ctx context.Context) ([]api.Token, error) {
	list, err := get[api.TokenList](ctx, t.c, "/v1/tokens", nil)
	return list.Tokens, err
}

// Self returns who asks, and what they may do.
func (t Tokens) Self(ctx context.Context) (api.Caller, error) {
	return get[api.Caller](ctx, t.c, "/v1/tokens/self", nil)
}

// Create makes a token. The answer holds its secret, only this once.
func (t Tokens) Create(ctx context.Context, n api.NewToken) (api.CreatedToken, error) {
	return send[api.CreatedToken](ctx, t.c, http.MethodPost, "/v1/tokens", nil, n)
}

// Delete removes a token. It removes the last one with the role admin only with force.
func (t Tokens) Delete(ctx context.Context, name string, force bool) error {
	return t.c.do(ctx, http.MethodDelete, "/v1/tokens/"+api.Segment(name), flag("force", force), nil, nil)
}
