package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
)

// decisionInput is a decision about a message, as the request gives it.
type decisionInput struct {
	ID      string `path:"id" doc:"The message id; a UUID in any form."`
	Content body
}

// decisionProblems lists the refusals of a person's decision about a message.
func decisionProblems(verb holdfast.Verb) map[api.Sort]string {
	return map[api.Sort]string{
		api.NotFound:   "No such message is kept.",
		api.WrongState: "It is not " + brief.AnyOf(verb.States()) + "; the problem names its state.",
		api.DiskFull:   "The disk is full; nothing was changed.",
	}
}

// Descriptions of the routes of decisions, for this node and for a site.
const (
	retryText   = "Starts a new cycle of a parked, expired or discarded message: failures count from zero, it is due at once, and its TTL begins anew."
	discardText = "Gives up a message that is not delivered. A message that is being tried is discarding until that attempt ends, and is then discarded unless the attempt delivered it. Its row is kept for its retention."
	runText     = "Makes a pending message due at once. It still waits for its destination and its ordering key. For a message that is being tried, this applies to the retry."
	laterText   = "Sets when a pending message is tried next. For a message that is being tried, this applies to the retry, whatever the outcome of that attempt."
)

// decided is one decision that a person may make about a message, in this node's outbox or in a site's.
type decided struct {
	name, summary, text string
	verb                holdfast.Verb
	request             reflect.Type // nil: no body
	sample              string
	do                  func(ctx context.Context, m admin.Messages, id string, content *body) (api.Message, error)
}

func allDecided() []decided {
	return []decided{
		{
			"retry", "Retry a message", retryText, holdfast.VerbRequeue, reflect.TypeFor[api.RetryRequest](), `{"ttl":"24h"}`,
			func(ctx context.Context, m admin.Messages, id string, content *body) (api.Message, error) {
				return deciding(content, func(req *api.RetryRequest, wrong []api.Fault) (api.Message, error) {
					return m.Retry(ctx, id, req, wrong...)
				})
			},
		},
		{
			"discard", "Discard a message", discardText, holdfast.VerbDiscard, nil, "",
			func(ctx context.Context, m admin.Messages, id string, _ *body) (api.Message, error) {
				return m.Discard(ctx, id)
			},
		},
		{
			"run", "Run a message now", runText, holdfast.VerbReschedule, nil, "",
			func(ctx context.Context, m admin.Messages, id string, _ *body) (api.Message, error) {
				return m.Run(ctx, id)
			},
		},
		{
			"reschedule", "Reschedule a message", laterText, holdfast.VerbReschedule, reflect.TypeFor[api.RescheduleRequest](), `{"in":"2h"}`,
			func(ctx context.Context, m admin.Messages, id string, content *body) (api.Message, error) {
				return deciding(content, func(req *api.RescheduleRequest, wrong []api.Fault) (api.Message, error) {
					return m.Reschedule(ctx, id, req, wrong...)
				})
			},
		},
	}
}

// deciding reads the body of a decision and makes the decision.
func deciding[Req any](content *body, do func(req *Req, wrong []api.Fault) (api.Message, error)) (m api.Message, err error) {
	var req Req
	wrong, p := content.decode(&req)
	if p != nil {
		return m, p
	}
	return do(&req, wrong)
}

// route returns the route for this node's messages.
func (d *decided) route() route {
	r := route{
		method: http.MethodPost, path: "/v1/messages/{id}/" + d.name, id: d.name + "-message", tag: "messages", right: api.Operate, scoped: true,
		summary: d.summary, description: d.text, problems: decisionProblems(d.verb), request: d.request, bodyRequired: d.verb == holdfast.VerbReschedule && d.request != nil,
	}
	if d.sample != "" {
		r.requestSample = json.RawMessage(d.sample)
	}
	return r
}

func decisions(b *builder) {
	for _, d := range allDecided() {
		handle(b, d.route(), func(ctx context.Context, in *decisionInput) (*answer[api.Message], error) {
			return answerOf(d.do(ctx, admin.Messages{Service: b.Service}, in.ID, &in.Content))
		})
	}
}

// siteDecisions adds the same routes for messages of a site.
func siteDecisions(b *builder) {
	for _, d := range allDecided() {
		there := d.route()
		there.description = "As POST " + there.path + ", at the site."
		there.path, there.id, there.tag = "/v1/sites/{site}/messages/{id}/"+d.name, d.name+"-site-message", "sites"
		there.summary, there.problems = d.summary+" of a site", relayed(decisionProblems(d.verb))
		handle(b, there, func(ctx context.Context, in *siteDecisionInput) (*answer[api.Message], error) {
			there, err := admin.Sites{Service: b.Service}.At(ctx, in.Site)
			if err != nil {
				return nil, err
			}
			return answerOf(d.do(ctx, there, in.ID, &in.Content))
		})
	}
}
