package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Lists lists the lists.
func (c *Client) Lists(ctx context.Context) ([]api.ListSummary, error) {
	var all api.Lists
	err := c.do(ctx, http.MethodGet, "/v1/lists", nil, nil, &all)
	return all.Lists, err
}

// List returns one list with its recipients.
func (c *Client) List(ctx context.Context, name string) (api.List, error) {
	var one api.List
	err := c.do(ctx, http.MethodGet, "/v1/lists/"+api.Segment(name), nil, nil, &one)
	return one, err
}

// PutList makes or replaces a list. With a Version it replaces only the one
// that was seen.
func (c *Client) PutList(ctx context.Context, name string, spec api.ListSpec) (api.List, error) {
	var one api.List
	err := c.ask(ctx, http.MethodPut, "/v1/lists/"+api.Segment(name), spec, &one)
	return one, err
}

// DeleteList ends a list.
func (c *Client) DeleteList(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, "/v1/lists/"+api.Segment(name), nil, nil, nil)
}

// PutRecipient adds a recipient to a list, or changes the one of this channel
// and address.
func (c *Client) PutRecipient(ctx context.Context, list string, r api.RecipientSpec) (api.ListChange, error) {
	var change api.ListChange
	err := c.ask(ctx, http.MethodPut, "/v1/lists/"+api.Segment(list)+"/recipients", r, &change)
	return change, err
}

// DeleteRecipient removes a recipient from a list.
func (c *Client) DeleteRecipient(ctx context.Context, list, channel, address string) (api.ListChange, error) {
	query := url.Values{"channel": {channel}}
	if address != "" {
		query.Set("address", address)
	}
	var change api.ListChange
	err := c.do(ctx, http.MethodDelete, "/v1/lists/"+api.Segment(list)+"/recipients", query, nil, &change)
	return change, err
}

// ImportRecipients adds all recipients of a text to a list, or none.
func (c *Client) ImportRecipients(ctx context.Context, list string, r api.ImportRequest) (api.ListChange, error) {
	var change api.ListChange
	err := c.ask(ctx, http.MethodPost, "/v1/lists/"+api.Segment(list)+"/recipients/import", r, &change)
	return change, err
}
