package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Lists offers the lists of recipients.
type Lists struct{ c *Client }

// Lists returns the lists of the node.
func (c *Client) Lists() Lists { return Lists{c} }

func listPath(name string) string { return "/v1/lists/" + api.Segment(name) }

// List returns the lists, without their recipients.
func (l Lists) List(ctx context.Context) ([]api.ListSummary, error) {
	all, err := get[api.Lists](ctx, l.c, "/v1/lists", nil)
	return all.Lists, err
}

// Get returns one list with its recipients.
func (l Lists) Get(ctx context.Context, name string) (api.List, error) {
	return get[api.List](ctx, l.c, listPath(name), nil)
}

// Put makes or replaces a list. With a Version it replaces only that version.
func (l Lists) Put(ctx context.Context, name string, spec api.ListSpec) (api.List, error) {
	return send[api.List](ctx, l.c, http.MethodPut, listPath(name), nil, spec)
}

// Delete removes a list.
func (l Lists) Delete(ctx context.Context, name string) error {
	return l.c.do(ctx, http.MethodDelete, listPath(name), nil, nil, nil)
}

// PutRecipient adds a recipient to a list, or changes the one with this channel and address.
func (l Lists) PutRecipient(ctx context.Context, list string, r api.RecipientSpec) (api.ListChange, error) {
	return send[api.ListChange](ctx, l.c, http.MethodPut, listPath(list)+"/recipients", nil, r)
}

// DeleteRecipient removes a recipient from a list.
func (l Lists) DeleteRecipient(ctx context.Context, list, channel, address string) (api.ListChange, error) {
	query := url.Values{"channel": {channel}}
	if address != "" {
		query.Set("address", address)
	}
	return send[api.ListChange](ctx, l.c, http.MethodDelete, listPath(list)+"/recipients", query, nil)
}

// Import adds all recipients of a text to a list, or none.
func (l Lists) Import(ctx context.Context, list string, r api.ImportRequest) (api.ListChange, error) {
	return send[api.ListChange](ctx, l.c, http.MethodPost, listPath(list)+"/recipients/import", nil, r)
}
