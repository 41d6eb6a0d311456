package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Notifications offers what people are told.
type Notifications struct{ c *Client }

// Notifications returns the notifications of the node.
func (c *Client) Notifications() Notifications { return Notifications{c} }

func notificationPath(id string) string { return "/v1/notifications/" + api.Segment(id) }

// Send sends a notification. If an error leaves open whether the notification was taken, it is safe to call
// Send again with the same ID.
func (o Notifications) Send(ctx context.Context, n api.NewNotification) (a api.NotificationAccepted, err error) {
	raw := n.Data
	n.Data = nil
	body, err := withRaw("notify", n, "data", raw)
	if err != nil {
		return a, err
	}
	err = o.c.do(ctx, http.MethodPost, "/v1/notifications", nil, body, &a)
	return a, err
}

// Status returns how a notification stands, by its id alone.
func (o Notifications) Status(ctx context.Context, id string) (api.NotificationStatus, error) {
	return get[api.NotificationStatus](ctx, o.c, notificationPath(id), nil)
}

// NotificationQuery narrows a list of notifications. Zero fields do not narrow.
type NotificationQuery struct {
	Statuses                                   []string
	ID                                         string // of every site that has sent it
	Channel, List, Type, Site, Script, Subject string
	From, To                                   time.Time // time of arrival; To is excluded
	Stuck                                      bool
	After                                      string // NotificationPage.Next of the previous page
	Limit                                      int    // 1 to 500; zero: 50
}

// List returns one page of copies, newest first.
func (o Notifications) List(ctx context.Context, q NotificationQuery) (api.NotificationPage, error) {
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
	return get[api.NotificationPage](ctx, o.c, "/v1/notifications", query)
}

// Get returns one notification with its copies, recipients and histories. site may be empty if only one site
// has sent the id.
func (o Notifications) Get(ctx context.Context, site, id string) (api.NotificationDetail, error) {
	return get[api.NotificationDetail](ctx, o.c, notificationPath(id), ofSite(site))
}

// ofSite is the query that names the site of a notification.
func ofSite(site string) url.Values {
	if site == "" {
		return nil
	}
	return url.Values{"site": {site}}
}

// KPIs returns the numbers for all sites together and for each site.
func (o Notifications) KPIs(ctx context.Context) (api.NotificationKPIs, error) {
	return get[api.NotificationKPIs](ctx, o.c, "/v1/notifications/kpis", nil)
}

// Retry makes the parked and discarded copies of a notification pending again. site may be empty if only one
// site has sent the id. This holds for the decisions below, too.
func (o Notifications) Retry(ctx context.Context, site, id string, r api.RetryNotification) (api.DecidedNotification, error) {
	return o.decide(ctx, site, id, "/retry", r)
}

// Discard gives up the copies of a notification that are not delivered.
func (o Notifications) Discard(ctx context.Context, site, id string, r api.DiscardNotification) (api.DecidedNotification, error) {
	return o.decide(ctx, site, id, "/discard", r)
}

// Run makes the pending copies of a notification due at once.
func (o Notifications) Run(ctx context.Context, site, id string, r api.RunNotification) (api.DecidedNotification, error) {
	return o.decide(ctx, site, id, "/run", r)
}

// Reschedule sets when the pending copies of a notification are tried next.
func (o Notifications) Reschedule(ctx context.Context, site, id string, r api.RescheduleNotification) (api.DecidedNotification, error) {
	return o.decide(ctx, site, id, "/reschedule", r)
}

func (o Notifications) decide(ctx context.Context, site, id, verb string, req any) (api.DecidedNotification, error) {
	return send[api.DecidedNotification](ctx, o.c, http.MethodPost, notificationPath(id)+verb, ofSite(site), req)
}
