package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
)

type decideInput struct {
	WithBody
	ID   string `path:"id" doc:"The notification id; a UUID in any form."`
	Site string `query:"site" doc:"The site that sent it. May be absent if only one site has sent this id."`
}

// copyDecisions adds the routes of decisions about a notification.
func copyDecisions(b *builder) {
	all := admin.Notifications{Service: b.Service}
	decideCopies(b, "retry", "Retry a notification", "Makes its parked and discarded copies pending again: they are due at once, and failures count from zero. Recipients who have accepted are not asked again; those who refused are.",
		holdfast.VerbRequeue, `{"channel":"mail"}`, all.Retry)
	decideCopies(b, "discard", "Discard a notification", "Gives up its copies that are not delivered. A copy that is being tried is discarding until that attempt ends, and is then discarded unless the attempt delivered it. The rows are kept for their retention.",
		holdfast.VerbDiscard, `{"reason":"the alarm is over"}`, all.Discard)
	decideCopies(b, "run", "Run a notification now", "Makes its pending copies due at once; the count of failures goes on. Copies still wait for a channel that is held or in back-off. For a copy that is being tried, this applies to the retry.",
		holdfast.VerbReschedule, `{"channel":"mail"}`, all.Run)
	decideCopies(b, "reschedule", "Reschedule a notification", "Sets when its pending copies are tried next. For a copy that is being tried, this applies to the retry, whatever the outcome of that attempt.",
		holdfast.VerbReschedule, `{"in":"2h"}`, all.Reschedule)
}

func decideCopies[Req any](b *builder, name, summary, text string, verb holdfast.Verb, sample string,
	decide func(ctx context.Context, site, id string, req *Req, wrong ...api.Fault) (api.DecidedNotification, error),
) {
	asked(b, route{
		method: http.MethodPost, path: "/v1/notifications/{id}/" + name, id: name + "-notification", tag: "notifications", right: api.Operate, scoped: true,
		summary: summary, description: text, requestSample: json.RawMessage(sample), bodyRequired: name == "reschedule",
		problems: map[api.Sort]string{
			api.NotFound: "No such notification is kept.", api.Conflict: severalSites, api.WrongState: "No copy of it is " + brief.AnyOf(admin.StatusesFor(verb)) + "; the problem names what they are.",
			api.DiskFull: "The disk is full; nothing was changed.", api.Unsupported: unsupportedNotify,
		},
	}, func(ctx context.Context, in *decideInput, req *Req, wrong []api.Fault) (*answer[api.DecidedNotification], error) {
		return answerOf(decide(ctx, in.Site, in.ID, req, wrong...))
	})
}
