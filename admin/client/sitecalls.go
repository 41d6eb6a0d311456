package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// SiteCalls offers what sites have told central of their operations. To retry or discard one, decide
// about the message of its id: see At.
type SiteCalls struct{ c *Client }

// SiteCalls returns the calls of sites.
func (c *Client) SiteCalls() SiteCalls { return SiteCalls{c} }

// SiteCallQuery narrows a list of calls. Zero fields do not narrow.
type SiteCallQuery struct {
	Site, Node, Destination, Category, Error string
	Statuses                                 []string
	From, To                                 time.Time
	After                                    string
	Limit                                    int
}

// List returns one page of calls, the newest first.
func (s SiteCalls) List(ctx context.Context, q *SiteCallQuery) (api.SiteCallPage, error) {
	v := url.Values{"status": q.Statuses}
	for name, value := range map[string]string{
		"site": q.Site, "node": q.Node, "destination": q.Destination, "category": q.Category, "error": q.Error, "after": q.After,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !t.IsZero() {
			v.Set(name, t.Format(time.RFC3339Nano))
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return get[api.SiteCallPage](ctx, s.c, "/v1/site-calls", v)
}

// Get returns one call.
func (s SiteCalls) Get(ctx context.Context, site, id string) (api.SiteCall, error) {
	return get[api.SiteCall](ctx, s.c, "/v1/site-calls/"+api.Segment(site)+"/"+api.Segment(id), nil)
}

// Counts counts the calls that have not ended, by site and node.
func (s SiteCalls) Counts(ctx context.Context) (api.SiteCallCounts, error) {
	return get[api.SiteCallCounts](ctx, s.c, "/v1/site-calls/kpis", nil)
}
