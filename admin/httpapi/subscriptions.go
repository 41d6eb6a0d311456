package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type subscriptionsInput struct {
	After string `query:"after" maxLength:"512" doc:"The value next of the previous page."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"The largest number of entries."`
}

type subscriptionInput struct {
	ID string `path:"id" doc:"The subscription's id."`
}

type putSubscriptionInput struct {
	admin.Conditions
	WithBody
	ID  string `path:"id" doc:"The subscription's id."`
	Dry bool   `query:"dryRun" doc:"Only check it, and show what would be stored: without a version, unless it is stored already."`
}

type deleteSubscriptionInput struct {
	admin.Conditions
	ID string `path:"id" doc:"The subscription's id."`
}

type decideSubscriptionInput struct {
	WithBody
	ID string `path:"id" doc:"The subscription's id."`
}

type subscriptionOutput struct {
	ETag string `header:"ETag" doc:"The version, for If-Match."`
	Body api.Subscription
}

func subscriptionAnswer(s api.Subscription, err error) (*subscriptionOutput, error) {
	if err != nil {
		return nil, err
	}
	return &subscriptionOutput{ETag: etag(s.Version), Body: s}, nil
}

func subscriptions(b *builder) {
	all := admin.Subscriptions{Service: b.Service}
	none := map[api.Sort]string{api.NotFound: "There is no such subscription.", api.Unsupported: noFanout}
	store := map[api.Sort]string{api.Conflict: "Messages of a deleted subscription with this id wait.", api.Changed: changedVersion, api.DiskFull: fullUnchanged, api.Unsupported: noFanout}
	sample := json.RawMessage(`{"topics":["orders"],"filter":{"types":["order.*"]},"url":"https://shop.example/hooks"}`)
	handle(b, route{
		method: http.MethodGet, path: "/v1/subscriptions", id: "list-subscriptions", tag: "events", right: api.Read, portal: api.Portal, scoped: true,
		summary: "List subscriptions", description: "By id.", problems: map[api.Sort]string{api.Unsupported: noFanout},
	}, func(ctx context.Context, in *subscriptionsInput) (*answer[api.SubscriptionPage], error) {
		return answerOf(all.List(ctx, in.After, in.Limit))
	})
	asked(b, route{
		method: http.MethodPost, path: "/v1/subscriptions", id: "create-subscription", tag: "events", right: api.Admin, scoped: true,
		summary: "Make a subscription", description: "It is for events that are published from now on.", status: http.StatusCreated,
		problems: store, bodyRequired: true, bodyLimit: bodyOfSubscription, requestSample: sample,
	}, func(ctx context.Context, _ *WithBody, req *api.SubscriptionSpec, wrong []api.Fault) (*subscriptionOutput, error) {
		return subscriptionAnswer(all.Put(ctx, "", req, admin.Conditions{}, wrong...))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/subscriptions/{id}", id: "get-subscription", tag: "events", right: api.Read, portal: api.Portal, scoped: true,
		summary: "Show a subscription", description: "With its state, who set it and why.", problems: none,
	}, func(ctx context.Context, in *subscriptionInput) (*subscriptionOutput, error) {
		return subscriptionAnswer(all.Get(ctx, in.ID))
	})
	asked(b, route{
		method: http.MethodPut, path: "/v1/subscriptions/{id}", id: "put-subscription", tag: "events", right: api.Admin, scoped: true,
		summary:     "Make or replace a subscription",
		description: "Which events it gets holds for those that are published from now on; where and how they are delivered holds for those that wait, too. Its state stays.",
		problems:    store, bodyRequired: true, bodyLimit: bodyOfSubscription, requestSample: sample,
	}, func(ctx context.Context, in *putSubscriptionInput, req *api.SubscriptionSpec, wrong []api.Fault) (*subscriptionOutput, error) {
		in.DryRun = in.Dry
		return subscriptionAnswer(all.Put(ctx, in.ID, req, in.Conditions, wrong...))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/subscriptions/{id}", id: "delete-subscription", tag: "events", right: api.Admin, scoped: true,
		summary: "Delete a subscription", description: "Its messages that were not delivered park.",
		problems: map[api.Sort]string{api.NotFound: none[api.NotFound], api.Changed: changedVersion, api.DiskFull: fullUnchanged, api.Unsupported: noFanout},
	}, func(ctx context.Context, in *deleteSubscriptionInput) (*struct{}, error) {
		return nil, all.Delete(ctx, in.ID, in.Conditions)
	})
	for _, verb := range []struct {
		name, summary, description string
		portal                     api.Right
		do                         func(ctx context.Context, id string, req *api.StateChange, wrong ...api.Fault) (api.Subscription, error)
	}{
		{"pause", "Pause a subscription", "Its messages are stored and wait. Their time goes on.", api.PortalPause, all.Pause},
		{"resume", "Resume a subscription", "What waits is sent, in its order.", api.PortalPause, all.Resume},
		{"disable", "Disable a subscription", "It gets no new messages, and those that it has wait.", "", all.Disable},
	} {
		asked(b, route{
			method: http.MethodPost, path: "/v1/subscriptions/{id}/" + verb.name, id: verb.name + "-subscription", tag: "events", right: api.Operate, portal: verb.portal, scoped: true,
			summary: verb.summary, description: verb.description, requestSample: json.RawMessage(`{"reason":"their maintenance until noon"}`),
			problems: map[api.Sort]string{api.NotFound: none[api.NotFound], api.WrongState: "An operator has set the state, and the caller is a subscriber.", api.DiskFull: fullUnchanged, api.Unsupported: noFanout},
		}, func(ctx context.Context, in *decideSubscriptionInput, req *api.StateChange, wrong []api.Fault) (*subscriptionOutput, error) {
			return subscriptionAnswer(verb.do(ctx, in.ID, req, wrong...))
		})
	}
	asked(b, route{
		method: http.MethodPost, path: "/v1/subscriptions/{id}/rotate-secret", id: "rotate-subscription-secret", tag: "events", right: api.Admin, portal: api.Portal, scoped: true,
		summary: "Replace the secret of a subscription", description: "Requests are signed with the new one, which the answer shows only this once, and for a while also with the former ones. If the answer is lost, ask again.",
		problems: map[api.Sort]string{
			api.NotFound: none[api.NotFound], api.WrongState: "Too many former secrets still sign, or a damaged file has lost the settings.", api.DiskFull: fullUnchanged, api.Unsupported: noFanout,
		},
		requestSample: json.RawMessage(`{"overlap":"24h"}`),
	}, func(ctx context.Context, in *decideSubscriptionInput, req *api.SecretRotation, wrong []api.Fault) (*answer[api.RotatedSecret], error) {
		return answerOf(all.RotateSecret(ctx, in.ID, req, wrong...))
	})
	asked(b, route{
		method: http.MethodPost, path: "/v1/subscriptions/{id}/test", id: "test-subscription", tag: "events", right: api.Operate, portal: api.Portal, scoped: true, slow: true,
		summary: "Call a subscriber", description: "One request with an event that is not stored, at once and whatever the state is. The answer shows both, without secrets.",
		problems: none, requestSample: json.RawMessage(`{"topic":"orders","type":"order.paid","data":{"test":true}}`),
	}, func(ctx context.Context, in *decideSubscriptionInput, req *api.NewEvent, wrong []api.Fault) (*answer[api.TestExchange], error) {
		return answerOf(all.Test(ctx, in.ID, req, wrong...))
	})
}

// bodyOfSubscription is the most bytes of a subscription: its filter may be long.
const bodyOfSubscription = 256 << 10
