package client

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Health asks how the node fares. A failing node is not an error.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	var h api.Health
	resp, err := c.roundTrip(ctx, http.MethodGet, "/_rf/health", nil, nil)
	if err != nil {
		return h, err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK && (resp.StatusCode != http.StatusServiceUnavailable || t != "application/json") {
		return h, c.problemOf(resp)
	}
	err = decodeAnswer(resp, &h)
	return h, err
}

// Overview returns how the node fares, with the numbers of its parts. A failing node is not an error.
func (c *Client) Overview(ctx context.Context) (api.Overview, error) {
	return get[api.Overview](ctx, c, "/v1/health", nil)
}

// History returns what nodes did in each minute since then.
func (c *Client) History(ctx context.Context, since time.Time) (api.History, error) {
	return get[api.History](ctx, c, "/v1/history", url.Values{"since": {since.UTC().Format(time.RFC3339Nano)}})
}

// OutboxStats returns the numbers of the outbox.
func (c *Client) OutboxStats(ctx context.Context) (api.OutboxStats, error) {
	return get[api.OutboxStats](ctx, c, "/_rf/outbox/stats", nil)
}

// InboxStats returns the numbers of the inbox.
func (c *Client) InboxStats(ctx context.Context) (api.InboxStats, error) {
	return get[api.InboxStats](ctx, c, "/_rf/inbox/stats", nil)
}

// Backup makes the node write a copy of its database into a folder on its machine. The time it takes grows
// with the database.
func (c *Client) Backup(ctx context.Context, folder string) (api.Backup, error) {
	return send[api.Backup](ctx, c, http.MethodPost, "/v1/backups", nil, api.NewBackup{Folder: folder})
}

// AcknowledgeHistory records that people know that the database has another history.
func (c *Client) AcknowledgeHistory(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/v1/history/acknowledge", nil, nil, nil)
}
