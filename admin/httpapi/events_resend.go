package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type resendInput struct {
	WithBody
	ID     string `path:"id" doc:"The event id; a UUID in any form."`
	Source string `query:"source" doc:"Who it is from. May be absent if only one source has sent this id."`
	Key    string `header:"Idempotency-Key" doc:"Gives the id of the resend if the body does not."`
}

func resends(b *builder) {
	all := admin.Events{Service: b.Service}
	asked(b, route{
		method: http.MethodPost, path: "/v1/events/{id}/resend", id: "resend-event", tag: "events", right: api.Operate, portal: api.Portal, scoped: true,
		summary: "Send an event again",
		description: "The answer comes after a new message for each subscription is on disk. A subscriber knows it by the webhook-id of the first one, which stays as it is. " +
			"A subscription that is deleted or disabled gets nothing. The same id is the same resend: asking again is safe, and changes nothing.",
		problems: map[api.Sort]string{
			api.NotFound: "No such event is kept.", api.WrongState: "No subscription gets it.", api.Conflict: "The id belongs to another resend.",
			api.DiskFull: "The disk is full; nothing was sent.", api.Unsupported: noFanout,
		},
		requestSample: json.RawMessage(`{"subscription":"shop"}`),
	}, func(ctx context.Context, in *resendInput, req *api.ResendRequest, wrong []api.Fault) (*answer[api.Resent], error) {
		return answerOf(all.Resend(ctx, in.Source, in.ID, in.Key, req, wrong...))
	})
}
