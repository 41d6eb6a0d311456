package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Notify tells people. It is safe to call again with the same ID when an error
// leaves open whether the notification was taken.
func (c *Client) Notify(ctx context.Context, n api.NewNotification) (api.NotificationAccepted, error) {
	var a api.NotificationAccepted
	raw := n.Data
	n.Data = nil
	if raw != nil && !json.Valid(raw) {
		return a, fmt.Errorf("notify: the data is not JSON")
	}
	body, err := api.Spliced(n, "data", raw)
	if err != nil {
		return a, err
	}
	err = c.do(ctx, http.MethodPost, "/v1/notifications", nil, body, &a)
	return a, err
}

// NotificationStatus says how a notification stands.
func (c *Client) NotificationStatus(ctx context.Context, id string) (api.NotificationStatus, error) {
	var s api.NotificationStatus
	err := c.do(ctx, http.MethodGet, "/v1/notifications/"+api.Segment(id), nil, nil, &s)
	return s, err
}

// NotificationQuery narrows a list of notifications. Zero fields do not narrow.
type NotificationQuery struct {
	Statuses                                   []string
	ID                                         string // of each site that has sent one
	Channel, List, Type, Site, Script, Subject string
	From, To                                   time.Time // of when they came; To is excluded
	Stuck                                      bool
	After                                      string // NotificationPage.Next of the page before
	Limit                                      int    // 1 to 500; zero: 50
}

// Notifications returns one page of copies, newest first.
func (c *Client) Notifications(ctx context.Context, q NotificationQuery) (api.NotificationPage, error) {
	query := paging(q.After, q.Limit)
	for _, s := range q.Statuses {
		query.Add("status", s)
	}
	for name, value := range map[string]string{
		"id": q.ID, "channel": q.Channel, "list": q.List, "type": q.Type, "site": q.Site, "script": q.Script, "subject": q.Subject,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, t := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !t.IsZero() {
			query.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Stuck {
		query.Set("stuck", "true")
	}
	var p api.NotificationPage
	err := c.do(ctx, http.MethodGet, "/v1/notifications", query, nil, &p)
	return p, err
}

// Notification returns one notification with its copies, recipients and
// histories. The site may be empty where only one has sent the id.
func (c *Client) Notification(ctx context.Context, site, id string) (api.NotificationDetail, error) {
	var d api.NotificationDetail
	err := c.do(ctx, http.MethodGet, "/v1/notifications/"+api.Segment(id), ofSite(site), nil, &d)
	return d, err
}

// ofSite names the site of a notification.
func ofSite(site string) url.Values {
	if site == "" {
		return nil
	}
	return url.Values{"site": {site}}
}

// NotificationKPIs returns the numbers of all sites and of each.
func (c *Client) NotificationKPIs(ctx context.Context) (api.NotificationKPIs, error) {
	var k api.NotificationKPIs
	err := c.do(ctx, http.MethodGet, "/v1/notifications/kpis", nil, nil, &k)
	return k, err
}

// RetryNotification makes its parked and discarded copies pending again. The site may be
// empty where only one has sent the id.
func (c *Client) RetryNotification(ctx context.Context, site, id string, r api.RetryNotification) (api.DecidedNotification, error) {
	return c.decideNotification(ctx, site, id, "/retry", r)
}

// DiscardNotification gives up its copies that are not delivered. The site may be empty where
// only one has sent the id.
func (c *Client) DiscardNotification(ctx context.Context, site, id string, r api.DiscardNotification) (api.DecidedNotification, error) {
	return c.decideNotification(ctx, site, id, "/discard", r)
}

// RunNotification makes its pending copies due at once. The site may be empty
// where only one has sent the id.
func (c *Client) RunNotification(ctx context.Context, site, id string, r api.RunNotification) (api.DecidedNotification, error) {
	return c.decideNotification(ctx, site, id, "/run", r)
}

// RescheduleNotification says when its pending copies are tried next. The site may
// be empty where only one has sent the id.
func (c *Client) RescheduleNotification(ctx context.Context, site, id string, r api.RescheduleNotification) (api.DecidedNotification, error) {
	return c.decideNotification(ctx, site, id, "/reschedule", r)
}

func (c *Client) decideNotification(ctx context.Context, site, id, verb string, req any) (d api.DecidedNotification, err error) {
	body, err := json.Marshal(req)
	if err != nil {
		return d, fmt.Errorf("encode %T: %w", req, err)
	}
	err = c.do(ctx, http.MethodPost, "/v1/notifications/"+api.Segment(id)+verb, ofSite(site), body, &d)
	return d, err
}
