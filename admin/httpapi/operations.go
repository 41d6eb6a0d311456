package httpapi

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type operationsInput struct {
	Status      []string `query:"status,explode" doc:"Only these: submitted, retrying, delivered, failed, parked, expired, discarded. Repeat the parameter, or separate by commas."`
	Destination string   `query:"destination" maxLength:"128" doc:"Only this destination."`
	Category    string   `query:"category" maxLength:"128" doc:"Only this category."`
	Instance    string   `query:"instance" maxLength:"256" doc:"Only of this instance."`
	Script      string   `query:"script" maxLength:"256" doc:"Only of this script."`
	Execution   string   `query:"execution" maxLength:"256" doc:"Only of this run, and of the runs that it started."`
	Trace       string   `query:"trace" maxLength:"32" doc:"Only of this trace: its id."`
	From        string   `query:"from" maxLength:"64" doc:"Submitted at this time or later: RFC 3339, or a day in UTC."`
	To          string   `query:"to" maxLength:"64" doc:"Submitted before this time."`
	Error       string   `query:"error" maxLength:"256" doc:"Only with this text in the last error, in any case."`
	After       string   `query:"after" maxLength:"512" doc:"The value next of the previous page."`
	Limit       int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"The largest number of entries."`
}

func operations(b *builder) {
	operations := admin.Operations{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/v1/operations", id: "list-operations", tag: "operations", right: api.Read, scoped: true,
		summary: "List operations", description: "Calls of foreign systems and writes to foreign databases, newest first. Each page looks at a bounded number of rows: it may be short or empty and still have a next one.",
		problems: map[api.Sort]string{api.Unsupported: "This node keeps no operations."},
	}, func(ctx context.Context, in *operationsInput) (*answer[api.OperationPage], error) {
		return answerOf(operations.List(ctx, &admin.OperationQuery{
			Status: in.Status, Destination: in.Destination, Category: in.Category, Instance: in.Instance, Script: in.Script, Execution: in.Execution,
			Trace: in.Trace, From: in.From, To: in.To, Error: in.Error, After: in.After, Limit: in.Limit,
		}))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/operations/{id}", id: "get-operation", tag: "operations", right: api.Read, scoped: true,
		summary: "Show an operation", description: "What became of a call or a write. The answer comes from this node alone, also while all others are away, and for some time after its message is purged.",
		problems: map[api.Sort]string{api.NotFound: "No such operation is known.", api.Unsupported: "This node keeps no operations."},
	}, func(ctx context.Context, in *idInput) (*answer[api.Operation], error) {
		return answerOf(operations.Get(ctx, in.ID))
	})
}
