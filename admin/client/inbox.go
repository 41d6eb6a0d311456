package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Inbox offers the received messages that wait to be fetched.
type Inbox struct{ c *Client }

// Inbox returns the inbox of the node.
func (c *Client) Inbox() Inbox { return Inbox{c} }

// InboxQuery narrows a list of received messages. Zero fields do not narrow.
type InboxQuery struct {
	Endpoint string
	After    int64 // KeptPage.Next of the previous page
	Limit    int   // 1 to 500; zero: 50
}

// List returns one page of received messages that wait, oldest first.
func (b Inbox) List(ctx context.Context, q InboxQuery) (api.KeptPage, error) {
	after := ""
	if q.After != 0 {
		after = strconv.FormatInt(q.After, 10)
	}
	query := paging(after, q.Limit)
	if q.Endpoint != "" {
		query.Set("endpoint", q.Endpoint)
	}
	return get[api.KeptPage](ctx, b.c, "/v1/inbox", query)
}

// Done marks a received message done. A repeat with the same response is not an error.
func (b Inbox) Done(ctx context.Context, id string, r api.DoneRequest) (d api.Done, err error) {
	raw := r.Response
	r.Response = nil
	body, err := withRaw("done", r, "response", raw)
	if err != nil {
		return d, err
	}
	err = b.c.do(ctx, http.MethodPost, "/v1/inbox/"+api.Segment(id)+"/done", nil, body, &d)
	return d, err
}
