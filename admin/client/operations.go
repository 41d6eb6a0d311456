package client

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Operations offers what became of calls and writes.
type Operations struct{ c *Client }

// Operations returns the operations of the node.
func (c *Client) Operations() Operations { return Operations{c} }

// OperationQuery narrows a list of operations. Zero fields do not narrow.
type OperationQuery struct {
	Statuses                                                         []string
	Destination, Category, Instance, Script, Execution, Trace, Error string
	From, To                                                         time.Time // of submission; To is excluded
	After                                                            string    // OperationPage.Next of the previous page
	Limit                                                            int       // 1 to 500; zero: 50
}

// Get returns one operation.
func (o Operations) Get(ctx context.Context, id string) (api.Operation, error) {
	return get[api.Operation](ctx, o.c, "/v1/operations/"+api.Segment(id), nil)
}

// List returns one page, newest first. A page may be short or empty and still have a next one.
func (o Operations) List(ctx context.Context, q OperationQuery) (api.OperationPage, error) {
	query := paging(q.After, q.Limit)
	for _, s := range q.Statuses {
		query.Add("status", s)
	}
	for name, value := range map[string]string{
		"destination": q.Destination, "category": q.Category, "instance": q.Instance, "script": q.Script, "execution": q.Execution, "trace": q.Trace, "error": q.Error,
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
	return get[api.OperationPage](ctx, o.c, "/v1/operations", query)
}
