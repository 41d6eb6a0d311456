package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// InboxQuery narrows a list of received messages. Zero fields do not narrow.
type InboxQuery struct {
	Endpoint string
	After    int64 // KeptPage.Next of the page before
	Limit    int   // 1 to 500; zero: 50
}

// Inbox returns one page of received messages that wait, oldest first.
func (c *Client) Inbox(ctx context.Context, q InboxQuery) (api.KeptPage, error) {
	after := ""
	if q.After != 0 {
		after = strconv.FormatInt(q.After, 10)
	}
	query := paging(after, q.Limit)
	if q.Endpoint != "" {
		query.Set("endpoint", q.Endpoint)
	}
	var p api.KeptPage
	err := c.do(ctx, http.MethodGet, "/v1/inbox", query, nil, &p)
	return p, err
}

// Done marks a received message done; calling it again with the same response
// is no error.
func (c *Client) Done(ctx context.Context, id string, r api.DoneRequest) (api.Done, error) {
	var d api.Done
	raw := r.Response
	r.Response = nil
	if raw != nil && !json.Valid(raw) {
		return d, fmt.Errorf("done: the response is not JSON")
	}
	body, err := api.Spliced(r, "response", raw)
	if err != nil {
		return d, err
	}
	err = c.do(ctx, http.MethodPost, "/v1/inbox/"+api.Segment(id)+"/done", nil, body, &d)
	return d, err
}
