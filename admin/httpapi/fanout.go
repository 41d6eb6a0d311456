package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type topicInput struct {
	Name string `path:"name" doc:"The topic's name."`
}

type putTopicInput struct {
	admin.Conditions
	WithBody
	Name string `path:"name" doc:"The topic's name."`
	Dry  bool   `query:"dryRun" doc:"Only check it, and show what would be stored: without a version, unless it is stored already."`
}

type deleteTopicInput struct {
	admin.Conditions
	Name string `path:"name" doc:"The topic's name."`
}

type topicOutput struct {
	ETag string `header:"ETag" doc:"The version, for If-Match."`
	Body api.Topic
}

func topicAnswer(t api.Topic, err error) (*topicOutput, error) {
	if err != nil {
		return nil, err
	}
	return &topicOutput{ETag: etag(t.Version), Body: t}, nil
}

const (
	noFanout       = "This node keeps no topics and subscriptions."
	changedVersion = "It is not the version that the condition or the body names."
	fullUnchanged  = "The disk is full; nothing was changed."
)

func topics(b *builder) {
	all := admin.Topics{Service: b.Service}
	none := "There is no such topic."
	handle(b, route{
		method: http.MethodGet, path: "/v1/topics", id: "list-topics", tag: "events", right: api.Read, scoped: true,
		summary: "List topics", description: "By name.", problems: map[api.Sort]string{api.Unsupported: noFanout},
	}, func(ctx context.Context, _ *struct{}) (*answer[api.TopicList], error) { return answerOf(all.List(ctx)) })
	handle(b, route{
		method: http.MethodGet, path: "/v1/topics/{name}", id: "get-topic", tag: "events", right: api.Read, scoped: true,
		summary: "Show a topic", description: "What it is for.", problems: map[api.Sort]string{api.NotFound: none, api.Unsupported: noFanout},
	}, func(ctx context.Context, in *topicInput) (*topicOutput, error) {
		return topicAnswer(all.Get(ctx, in.Name))
	})
	asked(b, route{
		method: http.MethodPut, path: "/v1/topics/{name}", id: "put-topic", tag: "events", right: api.Admin, scoped: true,
		summary: "Make or replace a topic", description: "Programs publish events to topics that exist.",
		problems:     map[api.Sort]string{api.Changed: changedVersion, api.DiskFull: fullUnchanged, api.Unsupported: noFanout},
		bodyRequired: true, requestSample: json.RawMessage(`{"description":"What happens to orders"}`),
	}, func(ctx context.Context, in *putTopicInput, req *api.TopicSpec, wrong []api.Fault) (*topicOutput, error) {
		in.DryRun = in.Dry
		return topicAnswer(all.Put(ctx, in.Name, req, in.Conditions, wrong...))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/topics/{name}", id: "delete-topic", tag: "events", right: api.Admin, scoped: true,
		summary: "Delete a topic", description: "Nothing more can be published to it. Its events and the subscriptions that name it stay.",
		problems: map[api.Sort]string{api.NotFound: none, api.Changed: changedVersion, api.DiskFull: fullUnchanged, api.Unsupported: noFanout},
	}, func(ctx context.Context, in *deleteTopicInput) (*struct{}, error) {
		return nil, all.Delete(ctx, in.Name, in.Conditions)
	})
}

type publishInput struct {
	WithBody
	Key string `header:"Idempotency-Key" doc:"Gives the id if the body does not."`
}

type publishOutput struct {
	Status   int
	Location string `header:"Location" doc:"Where the event can be watched."`
	Body     api.EventAccepted
}

type eventsInput struct {
	Topic string `query:"topic" doc:"Only of this topic."`
	After string `query:"after" maxLength:"512" doc:"The value next of the previous page."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"The largest number of entries."`
}

type eventInput struct {
	ID     string `path:"id" doc:"The event id; a UUID in any form."`
	Source string `query:"source" doc:"Who it is from. May be absent if only one source has sent this id."`
	After  string `query:"after" maxLength:"512" doc:"The value next of the answer before, for the deliveries that follow."`
}

type explainInput struct {
	ID     string `path:"id" doc:"The event id; a UUID in any form."`
	Source string `query:"source" doc:"Who it is from. May be absent if only one source has sent this id."`
	After  string `query:"after" maxLength:"512" doc:"The value next of the previous page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"The largest number of entries."`
}

func events(b *builder) {
	all := admin.Events{Service: b.Service}
	none := map[api.Sort]string{api.NotFound: "No such event is kept.", api.Unsupported: noFanout}
	asked(b, route{
		method: http.MethodPost, path: "/v1/events", id: "publish-event", sends: true, tag: "events", right: api.Send, scoped: true,
		summary: "Publish an event",
		description: "The answer comes after the event is on disk with a message for each subscription that it is for, and before anybody is called. " +
			"The same id from the same source with the same content is the same event: sending it again is safe, changes nothing and gets the same answer.",
		status: http.StatusAccepted,
		problems: map[api.Sort]string{
			api.Conflict: "The id belongs to an event with other content.",
			api.TooLarge: fmt.Sprintf("The data are larger than this node takes: %d bytes.", b.LargestPayload()),
			api.DiskFull: "The disk is full; nothing was accepted.", api.Unsupported: noFanout,
		},
		bodyRequired: true, bodyLimit: b.LargestPayload() + envelopeRoom,
		requestSample: json.RawMessage(`{"topic":"orders","type":"order.paid","subject":"order-42","data":{"total":12.5}}`),
	}, func(ctx context.Context, in *publishInput, req *api.NewEvent, wrong []api.Fault) (*publishOutput, error) {
		taken, err := all.Publish(ctx, req, in.Key, wrong...)
		if err != nil {
			return nil, err
		}
		out := &publishOutput{Status: http.StatusAccepted, Location: "/v1/events/" + api.Segment(taken.ID) + "?source=" + url.QueryEscape(taken.Source), Body: taken}
		if taken.Duplicate {
			out.Status = http.StatusOK
		}
		return out, nil
	})
	responses := b.operation(http.MethodPost, "/v1/events").Responses
	repeat := *responses["202"]
	repeat.Description = "The id was known with the same content; this request changed nothing."
	responses["200"] = &repeat
	responses["202"].Description = "The event is new, and on disk."
	handle(b, route{
		method: http.MethodGet, path: "/v1/events", id: "list-events", tag: "events", right: api.Read, scoped: true,
		summary: "List events", description: "Newest first, without data and deliveries. A token that is narrowed to topics must name one of them.",
		problems: map[api.Sort]string{api.Unsupported: noFanout},
	}, func(ctx context.Context, in *eventsInput) (*answer[api.EventPage], error) {
		return answerOf(all.List(ctx, in.Topic, in.After, in.Limit))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/events/{id}", id: "get-event", content: true, tag: "events", right: api.Read, scoped: true,
		summary: "Show an event", description: "With its data, and what became of it at each subscription that it is for, and that the token may see.", problems: none,
	}, func(ctx context.Context, in *eventInput) (*answer[api.EventDetail], error) {
		return answerOf(all.Get(ctx, in.Source, in.ID, in.After))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/events/{id}/explain", id: "explain-event", tag: "events", right: api.Read, scoped: true,
		summary:     "Explain an event",
		description: "Why each subscription got it or not, as the subscriptions were when it came, and what each delivery waits for.", problems: none,
	}, func(ctx context.Context, in *explainInput) (*answer[api.EventExplanation], error) {
		return answerOf(all.Explain(ctx, in.Source, in.ID, in.After, in.Limit))
	})
}
