package client

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Health asks how the node fares. A node that is failing is no error.
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

// OutboxStats returns the numbers of the outbox.
func (c *Client) OutboxStats(ctx context.Context) (api.OutboxStats, error) {
	var s api.OutboxStats
	err := c.do(ctx, http.MethodGet, "/_rf/outbox/stats", nil, nil, &s)
	return s, err
}

// InboxStats returns the numbers of the inbox.
func (c *Client) InboxStats(ctx context.Context) (api.InboxStats, error) {
	var s api.InboxStats
	err := c.do(ctx, http.MethodGet, "/_rf/inbox/stats", nil, nil, &s)
	return s, err
}

// Backup makes the node write a copy of its database into a folder of its
// machine. It takes as long as the database is large.
func (c *Client) Backup(ctx context.Context, folder string) (api.Backup, error) {
	var made api.Backup
	body, err := json.Marshal(api.NewBackup{Folder: folder})
	if err != nil {
		return made, fmt.Errorf("encode backup: %w", err)
	}
	err = c.do(ctx, http.MethodPost, "/v1/backups", nil, body, &made)
	return made, err
}

// AcknowledgeHistory says that people know that the database has another history.
func (c *Client) AcknowledgeHistory(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/v1/history/acknowledge", nil, nil, nil)
}
