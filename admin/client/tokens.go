package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Tokens lists the tokens.
func (c *Client) Tokens(ctx context.Context) ([]api.Token, error) {
	var list api.TokenList
	err := c.do(ctx, http.MethodGet, "/v1/tokens", nil, nil, &list)
	return list.Tokens, err
}

// CreateToken makes a token; its secret is in the answer, this once.
func (c *Client) CreateToken(ctx context.Context, t api.NewToken) (api.CreatedToken, error) {
	var created api.CreatedToken
	body, err := json.Marshal(t)
	if err != nil {
		return created, fmt.Errorf("encode token: %w", err)
	}
	err = c.do(ctx, http.MethodPost, "/v1/tokens", nil, body, &created)
	return created, err
}

// DeleteToken ends a token. The last one with the role admin is kept unless
// force is said.
func (c *Client) DeleteToken(ctx context.Context, name string, force bool) error {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	return c.do(ctx, http.MethodDelete, "/v1/tokens/"+api.Segment(name), query, nil, nil)
}
