package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

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
func (c *Client) Notifications(ctx context.Context, q NotificationQuery) (NotificationPage, error) {
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
	var p NotificationPage
	err := c.do(ctx, http.MethodGet, "/v1/notifications", query, nil, &p)
	return p, err
}

// Notification returns one notification with its copies, recipients and
// histories. The site may be empty where only one has sent the id.
func (c *Client) Notification(ctx context.Context, site, id string) (NotificationDetail, error) {
	var d NotificationDetail
	err := c.do(ctx, http.MethodGet, "/v1/notifications/"+segment(id), ofSite(site), nil, &d)
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
func (c *Client) NotificationKPIs(ctx context.Context) (NotificationKPIs, error) {
	var k NotificationKPIs
	err := c.do(ctx, http.MethodGet, "/v1/notifications/kpis", nil, nil, &k)
	return k, err
}

// RetryNotification makes its parked and discarded copies pending again. The site may be
// empty where only one has sent the id.
func (c *Client) RetryNotification(ctx context.Context, site, id string, r RetryNotification) (DecidedNotification, error) {
	return c.decideNotification(ctx, site, id, "/retry", r)
}

// DiscardNotification gives up its copies that are not delivered. The site may be empty where
// only one has sent the id.
func (c *Client) DiscardNotification(ctx context.Context, site, id string, r DiscardNotification) (DecidedNotification, error) {
	return c.decideNotification(ctx, site, id, "/discard", r)
}

// RunNotification makes its pending copies due at once. The site may be empty
// where only one has sent the id.
func (c *Client) RunNotification(ctx context.Context, site, id string, r RunNotification) (DecidedNotification, error) {
	return c.decideNotification(ctx, site, id, "/run", r)
}

// RescheduleNotification says when its pending copies are tried next. The site may
// be empty where only one has sent the id.
func (c *Client) RescheduleNotification(ctx context.Context, site, id string, r RescheduleNotification) (DecidedNotification, error) {
	return c.decideNotification(ctx, site, id, "/reschedule", r)
}

func (c *Client) decideNotification(ctx context.Context, site, id, verb string, req any) (d DecidedNotification, err error) {
	body, err := json.Marshal(req)
	if err != nil {
		return d, fmt.Errorf("encode %T: %w", req, err)
	}
	err = c.do(ctx, http.MethodPost, "/v1/notifications/"+segment(id)+verb, ofSite(site), body, &d)
	return d, err
}

// ask asks with a body of JSON.
func (c *Client) ask(ctx context.Context, method, path string, req, out any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode %T: %w", req, err)
	}
	return c.do(ctx, method, path, nil, body, out)
}

// Channels lists the channels with how they fare.
func (c *Client) Channels(ctx context.Context) ([]Channel, error) {
	var list ChannelList
	err := c.do(ctx, http.MethodGet, "/v1/channels", nil, nil, &list)
	return list.Channels, err
}

// Channel returns one channel.
func (c *Client) Channel(ctx context.Context, name string) (Channel, error) {
	var one Channel
	err := c.do(ctx, http.MethodGet, "/v1/channels/"+segment(name), nil, nil, &one)
	return one, err
}

// PutChannel makes or replaces a channel. With a Version it replaces only the
// one that was seen.
func (c *Client) PutChannel(ctx context.Context, name string, spec ChannelSpec) (Channel, error) {
	var one Channel
	err := c.ask(ctx, http.MethodPut, "/v1/channels/"+segment(name), spec, &one)
	return one, err
}

// DeleteChannel ends a channel; by force also while it is needed.
func (c *Client) DeleteChannel(ctx context.Context, name string, force bool) error {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	return c.do(ctx, http.MethodDelete, "/v1/channels/"+segment(name), query, nil, nil)
}

// ResumeChannel lets a held channel go on at once.
func (c *Client) ResumeChannel(ctx context.Context, name string) (Channel, error) {
	var one Channel
	err := c.do(ctx, http.MethodPost, "/v1/channels/"+segment(name)+"/resume", nil, nil, &one)
	return one, err
}

// TestChannel sends a notification of its own. That it was refused is no
// error: the result says so.
func (c *Client) TestChannel(ctx context.Context, name, address string) (TestResult, error) {
	var r TestResult
	err := c.ask(ctx, http.MethodPost, "/v1/channels/"+segment(name)+"/test", TestRequest{address}, &r)
	return r, err
}

// Lists lists the lists.
func (c *Client) Lists(ctx context.Context) ([]ListSummary, error) {
	var all Lists
	err := c.do(ctx, http.MethodGet, "/v1/lists", nil, nil, &all)
	return all.Lists, err
}

// List returns one list with its recipients.
func (c *Client) List(ctx context.Context, name string) (List, error) {
	var one List
	err := c.do(ctx, http.MethodGet, "/v1/lists/"+segment(name), nil, nil, &one)
	return one, err
}

// PutList makes or replaces a list. With a Version it replaces only the one
// that was seen.
func (c *Client) PutList(ctx context.Context, name string, spec ListSpec) (List, error) {
	var one List
	err := c.ask(ctx, http.MethodPut, "/v1/lists/"+segment(name), spec, &one)
	return one, err
}

// DeleteList ends a list.
func (c *Client) DeleteList(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, "/v1/lists/"+segment(name), nil, nil, nil)
}

// PutRecipient adds a recipient to a list, or changes the one of this channel
// and address.
func (c *Client) PutRecipient(ctx context.Context, list string, r RecipientSpec) (ListChange, error) {
	var change ListChange
	err := c.ask(ctx, http.MethodPut, "/v1/lists/"+segment(list)+"/recipients", r, &change)
	return change, err
}

// DeleteRecipient removes a recipient from a list.
func (c *Client) DeleteRecipient(ctx context.Context, list, channel, address string) (ListChange, error) {
	query := url.Values{"channel": {channel}}
	if address != "" {
		query.Set("address", address)
	}
	var change ListChange
	err := c.do(ctx, http.MethodDelete, "/v1/lists/"+segment(list)+"/recipients", query, nil, &change)
	return change, err
}

// ImportRecipients adds all recipients of a text to a list, or none.
func (c *Client) ImportRecipients(ctx context.Context, list string, r ImportRequest) (ListChange, error) {
	var change ListChange
	err := c.ask(ctx, http.MethodPost, "/v1/lists/"+segment(list)+"/recipients/import", r, &change)
	return change, err
}
