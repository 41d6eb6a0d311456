package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type bulkListInput struct {
	After string `query:"after" maxLength:"64" doc:"The next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

type bulkInput struct {
	ID string `path:"id" doc:"The id of the bulk action."`
}

type bulkRowsInput struct {
	ID    string `path:"id" doc:"The id of the bulk action."`
	After int64  `query:"after" minimum:"0" doc:"The next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many at most."`
}

func bulks(b *builder) {
	all := admin.Bulk{Service: b.Service}
	const none, unsupported = "There is no such bulk action.", "This node keeps no bulk actions."
	asked(b, route{
		method: http.MethodPost, path: "/v1/bulk", id: "add-bulk", tag: "bulk", right: api.Operate,
		summary: "Do one thing to all that a filter finds", description: "The answer has what the filter found, 100,000 at most; the node does the rest by itself, row by row, the oldest first. It goes on after a restart. Each row is a decision of its own in the history and in the audit log.",
		problems:     map[api.Sort]string{api.DiskFull: "The disk is full; nothing was done.", api.Unsupported: unsupported},
		bodyRequired: true, slow: true,
		requestSample: json.RawMessage(`{"list":"messages","verb":"retry","filter":{"status":["parked"],"destination":"inventory"},"rate":20}`),
	}, func(ctx context.Context, _ *struct{ WithBody }, req *api.BulkRequest, wrong []api.Fault) (*answer[api.Bulk], error) {
		return answerOf(all.Add(ctx, req, wrong...))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/bulk", id: "list-bulk", tag: "bulk", right: api.Read,
		summary: "List bulk actions", description: "The newest first. One is kept for 30 days after its end.",
		problems: map[api.Sort]string{api.Unsupported: unsupported},
	}, func(ctx context.Context, in *bulkListInput) (*answer[api.BulkPage], error) {
		return answerOf(all.List(ctx, in.After, in.Limit))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/bulk/{id}", id: "get-bulk", tag: "bulk", right: api.Read,
		summary: "Show a bulk action", description: "With how far it is.",
		problems: map[api.Sort]string{api.NotFound: none, api.Unsupported: unsupported},
	}, func(ctx context.Context, in *bulkInput) (*answer[api.Bulk], error) {
		return answerOf(all.Get(ctx, in.ID))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/bulk/{id}/rows", id: "list-bulk-rows", tag: "bulk", right: api.Read,
		summary: "List the rows of a bulk action", description: "What became of each. A row that was done when the node was killed may be recorded as refused, since its state had changed.",
		problems: map[api.Sort]string{api.NotFound: none, api.Unsupported: unsupported},
	}, func(ctx context.Context, in *bulkRowsInput) (*answer[api.BulkRowPage], error) {
		return answerOf(all.Rows(ctx, in.ID, in.After, in.Limit))
	})
	for _, c := range []struct {
		name, summary, text string
		do                  func(ctx context.Context, id string) (api.Bulk, error)
	}{
		{"pause", "Pause a bulk action", "Rows in hand are done; the others wait.", all.Pause},
		{"resume", "Resume a bulk action", "It goes on where it was paused.", all.Resume},
		{"cancel", "Cancel a bulk action", "What is done stays done; the other rows stay as they are.", all.Cancel},
	} {
		handle(b, route{
			method: http.MethodPost, path: "/v1/bulk/{id}/" + c.name, id: c.name + "-bulk", tag: "bulk", right: api.Operate,
			summary: c.summary, description: c.text,
			problems: map[api.Sort]string{api.NotFound: none, api.WrongState: "It has ended, or stands so already.", api.Unsupported: unsupported},
		}, func(ctx context.Context, in *bulkInput) (*answer[api.Bulk], error) {
			return answerOf(c.do(ctx, in.ID))
		})
	}
}
