package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// ActivityFilter is embedded in the input of routes about activities.
type ActivityFilter struct {
	Kind        string    `query:"kind" doc:"Only this kind: queued, delivered, retried, parked, retry, discard or disabled."`
	Destination string    `query:"destination" doc:"Only this destination."`
	Message     string    `query:"message" doc:"Only this message; a UUID in any form."`
	Actor       string    `query:"actor" doc:"Only what this person or token did."`
	Since       time.Time `query:"since" doc:"Not before this time."`
	Until       time.Time `query:"until" doc:"Not after this time."`
}

func (f *ActivityFilter) query() *admin.ActivityQuery {
	return &admin.ActivityQuery{Kind: f.Kind, Destination: f.Destination, Message: f.Message, Actor: f.Actor, Since: f.Since, Until: f.Until}
}

type activityInput struct {
	ActivityFilter

	After int64 `query:"after" minimum:"0" doc:"The value next of the previous page."`
	Limit int   `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"The largest number of activities."`
}

type activityStreamInput struct {
	ActivityFilter

	After int64 `query:"after" minimum:"-1" default:"-1" doc:"Begin after this one; -1: with what comes next."`
	// A browser that connects again sends it by itself.
	Last int64 `header:"Last-Event-ID" minimum:"0" doc:"The id of the last event, to go on after it."`
}

const (
	// mostStreams is how many streams a node serves at one time. Each reads the store once a second.
	mostStreams = 100
	// streamWrite is how long a reader may take to accept one event.
	streamWrite = 10 * time.Second
)

func activities(b *builder) {
	activity := admin.Activity{Service: b.Service}
	none := map[api.Sort]string{api.Unsupported: "This node keeps no activity log."}
	handle(b, route{
		method: http.MethodGet, path: "/v1/activity", id: "list-activity", tag: "activity", right: api.Read, scoped: true,
		summary: "List activities", description: "What happened to messages, newest first. A page looks at 20,000 lines of the log at most, unless a message is given: follow next until it is absent.",
		problems: none,
	}, func(ctx context.Context, in *activityInput) (*answer[api.ActivityPage], error) {
		return answerOf(activity.List(ctx, in.query(), in.After, in.Limit))
	})
	streams := make(chan struct{}, mostStreams)
	handle(b, route{
		method: http.MethodGet, path: "/v1/activity/stream", id: "stream-activity", tag: "activity", right: api.Read, scoped: true, slow: true,
		summary: "Follow activities",
		description: "Server-sent events: activities as they happen, oldest first, each event with what came in a second. The answer has no end. " +
			"An event without data comes now and then, while nothing happens.",
		problems: none,
	}, func(ctx context.Context, in *activityStreamInput) (*huma.StreamResponse, error) {
		if in.Last > 0 {
			in.After = in.Last
		}
		follow, err := activity.Follow(ctx, in.query(), in.After)
		if err != nil {
			return nil, err
		}
		select {
		case streams <- struct{}{}:
		default:
			return nil, api.Busy.Problem(fmt.Sprintf("the node serves %d streams already; list the activities, or try again later", mostStreams))
		}
		return &huma.StreamResponse{Body: func(h huma.Context) {
			defer func() { <-streams }()
			h.SetHeader("Content-Type", eventStream)
			h.SetHeader("Cache-Control", "no-store")
			_ = follow(ctx, func(n api.ActivityNews) error { return sendEvent(h.BodyWriter(), &n) }) // half an answer: nobody can be told
		}}, nil
	})
	b.operation(http.MethodGet, "/v1/activity/stream").Responses["200"] = &huma.Response{
		Description: "OK", Content: map[string]*huma.MediaType{eventStream: {Schema: b.schema(reflect.TypeFor[api.ActivityNews]())}},
	}
}

const eventStream = "text/event-stream"

// sendEvent writes one event, or a comment if there is no news.
func sendEvent(w io.Writer, n *api.ActivityNews) error {
	if len(n.Activities) == 0 && n.Missed == 0 {
		return streamed(w, fmt.Appendf(nil, ": %d\n\n", n.Last))
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return streamed(w, fmt.Appendf(nil, "id: %d\nevent: activity\ndata: %s\n\n", n.Last, data))
}
