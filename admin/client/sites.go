package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Sites lists the sites of a central node.
func (c *Client) Sites(ctx context.Context) ([]api.Site, error) {
	var list api.SiteList
	err := c.do(ctx, http.MethodGet, "/v1/sites", nil, nil, &list)
	return list.Sites, err
}

// AddSite makes a site; the token with which it enrolls is in the answer, this
// once.
func (c *Client) AddSite(ctx context.Context, name string) (api.SiteToken, error) {
	var t api.SiteToken
	body, err := json.Marshal(api.NewSite{Name: name})
	if err != nil {
		return t, fmt.Errorf("encode site: %w", err)
	}
	err = c.do(ctx, http.MethodPost, "/v1/sites", nil, body, &t)
	return t, err
}

// RotateSite makes a token with which a site enrolls again. With now its
// credentials end at once.
func (c *Client) RotateSite(ctx context.Context, name string, now bool) (api.SiteToken, error) {
	var t api.SiteToken
	query := url.Values{}
	if now {
		query.Set("now", "true")
	}
	err := c.do(ctx, http.MethodPost, "/v1/sites/"+api.Segment(name)+"/rotate", query, nil, &t)
	return t, err
}

// RevokeSite shuts a site out.
func (c *Client) RevokeSite(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, "/v1/sites/"+api.Segment(name), nil, nil, nil)
}

// At returns a client whose message calls are about a site's outbox: Message,
// Messages, Retry, Discard, Run and Reschedule. Central asks the site.
func (c *Client) At(site string) *Client {
	own := *c
	own.outbox = "/v1/sites/" + api.Segment(site) + "/messages"
	return &own
}

// messages is the path of the outbox that the client is about.
func (c *Client) messages() string {
	if c.outbox == "" {
		return "/v1/messages"
	}
	return c.outbox
}
