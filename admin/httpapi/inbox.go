package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type inboxInput struct {
	Endpoint string `query:"endpoint" doc:"Only this endpoint."`
	After    int64  `query:"after" minimum:"0" doc:"The value next of the previous page."`
	Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"The largest number of entries."`
}

type doneInput struct {
	WithBody
	ID string `path:"id" doc:"The message id; a UUID in any form."`
}

func inbox(b *builder) {
	inbox := admin.Inbox{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/v1/inbox", id: "list-inbox", content: true, tag: "inbox", right: api.Read,
		summary: "List received messages", description: "Messages of endpoints that keep them, until they are marked done.",
	}, func(ctx context.Context, in *inboxInput) (*answer[api.KeptPage], error) {
		return answerOf(inbox.Kept(ctx, holdfast.KeptQuery{Endpoint: in.Endpoint, Limit: in.Limit, After: in.After}))
	})
	asked(b, route{
		method: http.MethodPost, path: "/v1/inbox/{id}/done", id: "finish-inbox", tag: "inbox", right: api.Operate,
		summary: "Mark a received message done",
		description: "It leaves the list; its id is remembered, so that a repeat is answered with the response. " +
			"Marking it again with the same response is no error.",
		problems: map[api.Sort]string{
			api.NotFound: "No such message is kept.",
			api.Conflict: "It is done already with another response, or several sources sent this id: give the source.",
			api.DiskFull: "The disk is full; nothing was changed.",
		},
		bodyLimit:     b.LargestPayload() + smallBody,
		requestSample: json.RawMessage(`{"source":"engine","response":{"reserved":true}}`),
	}, func(ctx context.Context, in *doneInput, req *api.DoneRequest, wrong []api.Fault) (*answer[api.Done], error) {
		return answerOf(inbox.Done(ctx, in.ID, req, wrong...))
	})
}
