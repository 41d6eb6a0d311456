package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Sites offers the sites of a central node.
type Sites struct{ c *Client }

// Sites returns the sites of a central node.
func (c *Client) Sites() Sites { return Sites{c} }

// List returns the sites, by name.
func (s Sites) List(ctx context.Context) ([]api.Site, error) {
	list, err := get[api.SiteList](ctx, s.c, "/v1/sites", nil)
	return list.Sites, err
}

// Get returns one site, with the last report of each of its nodes.
func (s Sites) Get(ctx context.Context, name string) (api.Site, error) {
	return get[api.Site](ctx, s.c, "/v1/sites/"+api.Segment(name), nil)
}

// Add makes a site. The answer holds the token with which it enrolls, only this once.
func (s Sites) Add(ctx context.Context, name string) (api.SiteToken, error) {
	return send[api.SiteToken](ctx, s.c, http.MethodPost, "/v1/sites", nil, api.NewSite{Name: name})
}

// Rotate makes a token with which a site enrolls again. now ends its credentials at once.
func (s Sites) Rotate(ctx context.Context, name string, now bool) (api.SiteToken, error) {
	return send[api.SiteToken](ctx, s.c, http.MethodPost, "/v1/sites/"+api.Segment(name)+"/rotate", flag("now", now), nil)
}

// Revoke shuts a site out.
func (s Sites) Revoke(ctx context.Context, name string) error {
	return s.c.do(ctx, http.MethodDelete, "/v1/sites/"+api.Segment(name), nil, nil, nil)
}

// At returns a client whose Messages are those of a site's outbox. Central asks the site.
func (c *Client) At(site string) *Client {
	own := *c
	own.outbox = "/v1/sites/" + api.Segment(site) + "/messages"
	return &own
}

// flag returns a query with the one parameter name, or an empty query.
func flag(name string, set bool) url.Values {
	if !set {
		return nil
	}
	return url.Values{name: {"true"}}
}
