package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type listInput struct {
	State       []string `query:"state,explode" doc:"Only these states: repeat the parameter, or separate by commas."`
	Destination string   `query:"destination" doc:"Only this destination."`
	Held        bool     `query:"held" doc:"Only held messages (see heldUntil): the node doubts its clock, which says that their TTL is over. Pages are not ordered by time."`
	Category    string   `query:"category" maxLength:"128" doc:"Only destinations of this category, one after the other; excludes destination."`
	ID          string   `query:"id" doc:"Only this id, a UUID in any form, or ids that contain this part."`
	Endpoint    string   `query:"endpoint" doc:"Only this endpoint."`
	Key         string   `query:"key" doc:"Only this ordering key."`
	Correlation string   `query:"correlation" doc:"Only this correlation id."`
	Event       string   `query:"event" doc:"Only deliveries of the event with this id."`
	Topic       string   `query:"topic" doc:"Only deliveries of events of this topic."`
	From        string   `query:"from" doc:"Only those that were accepted at this instant or later: RFC 3339, or a day in UTC." example:"2026-11-28T08:00:00Z"`
	To          string   `query:"to" doc:"Only those that were accepted before this instant: RFC 3339, or a day in UTC." example:"2026-11-29"`
	Code        string   `query:"code" doc:"Only those whose last error has this code." example:"connection_refused"`
	Error       string   `query:"error" doc:"Words that the last error must all contain; case does not matter."`
	Grep        string   `query:"grep" doc:"Words that the headers and the first 64 KiB of the payload must all contain, as they are written there; case does not matter. The journal has such a search, since it reads content."`
	Cause       string   `query:"cause" doc:"Only those of this cause; see GET /v1/parked."`
	Count       int      `query:"count" minimum:"0" maximum:"10000" doc:"Count what is found on all pages, up to so many, for a short time. 0: do not."`
	After       string   `query:"after" maxLength:"512" doc:"The value next of the previous page."`
	Limit       int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"The largest number of entries."`
}

func (in *listInput) query() *admin.MessageQuery {
	return &admin.MessageQuery{
		States: in.State, Destination: in.Destination, Held: in.Held, Category: in.Category, Count: in.Count, After: in.After, Limit: in.Limit,
		MessageFilter: admin.MessageFilter{
			ID: in.ID, Endpoint: in.Endpoint, Key: in.Key, Correlation: in.Correlation, Event: in.Event, Topic: in.Topic,
			From: in.From, To: in.To, Code: in.Code, Error: in.Error, Grep: in.Grep, Cause: in.Cause,
		},
	}
}

// readsContent implements contentReader.
func (in *listInput) readsContent() bool { return in.Grep != "" }

type causesInput struct {
	Destination string `query:"destination" doc:"Only this destination."`
	Category    string `query:"category" maxLength:"128" doc:"Only destinations of this category; excludes destination."`
	Within      string `query:"within" doc:"How long to look at messages; absent: 200ms; 10s at most." example:"2s"`
}

type idInput struct {
	ID string `path:"id" doc:"The message id; a UUID in any form."`
}

func messages(b *builder) {
	messages := admin.Messages{Service: b.Service}
	send(b)
	handle(b, route{
		method: http.MethodGet, path: "/v1/messages", id: "list-messages", tag: "messages", right: api.Read, portal: api.Portal, scoped: true,
		summary: "List messages", description: "Newest first, without payloads and histories; with category, the newest of each destination first. Only state, destination, from, to and a whole id are led by an index. Anything else is compared message by message, for a short time: lookedUntil says how far, and next goes on.",
	}, func(ctx context.Context, in *listInput) (*answer[api.MessagePage], error) {
		return answerOf(messages.List(ctx, in.query()))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/parked", id: "list-causes", tag: "messages", right: api.Read, scoped: true,
		summary: "Group parked messages by cause", description: "Errors of one destination and code are one cause if they differ in ids, numbers, addresses and quoted words only. The newest messages are looked at, for a short time: lookedUntil says how far.",
	}, func(ctx context.Context, in *causesInput) (*answer[api.CauseList], error) {
		return answerOf(messages.Causes(ctx, (*admin.CauseQuery)(in)))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/messages/{id}", id: "get-message", content: true, tag: "messages", right: api.Read, portal: api.Portal, scoped: true,
		summary: "Show a message", description: "With its payload, its history, and in words why it has not been sent yet.",
		problems: map[api.Sort]string{api.NotFound: "No such message is kept."},
	}, func(ctx context.Context, in *idInput) (*answer[api.MessageDetail], error) {
		return answerOf(messages.Get(ctx, in.ID))
	})
}

type sendInput struct {
	WithBody
	Key string `header:"Idempotency-Key" doc:"Gives the id if the body does not."`
	WithTrace
}

type sendOutput struct {
	Status   int
	Location string `header:"Location" doc:"Where the message can be watched."`
	Body     api.Accepted
}

// envelopeRoom is the most bytes of all fields without the payload, escaped.
const envelopeRoom = 128 << 10

func send(b *builder) {
	asked(b, route{
		method: http.MethodPost, path: "/v1/messages", id: "send-message", sends: true, tag: "messages", right: api.Send, scoped: true,
		summary: "Send a message",
		description: "The answer comes after the message is on disk. The same id with the same content (kind, destination, endpoint, " +
			"payload; never headers) is the same message: sending it again is safe and changes nothing. With wait the answer comes " +
			"after the first attempt: a refusal for good is a problem; after any other failure the message is tried again.",
		status: http.StatusAccepted,
		problems: map[api.Sort]string{
			api.Conflict:   "The id belongs to a message with other content.",
			api.TooLarge:   fmt.Sprintf("The payload is larger than this node takes: %d bytes.", b.LargestPayload()),
			api.DiskFull:   "The disk is full; nothing was accepted.",
			api.Refused:    "The destination has refused the message for good. This request, or an earlier one with the same id, waited for the outcome.",
			api.WrongState: "The message with this id was discarded or has expired. It is not sent again unless a person retries it.",
		},
		bodyRequired: true, bodyLimit: b.LargestPayload() + envelopeRoom,
		requestSample: json.RawMessage(`{"destination":"inventory","endpoint":"OrderApproved","payload":{"order":42}}`),
	}, b.sent)
	responses := b.operation(http.MethodPost, "/v1/messages").Responses
	repeat := *responses["202"]
	repeat.Description = "The request waited and the message was delivered; or the id was known with the same content, and this request changed nothing."
	responses["200"] = &repeat
	responses["202"].Description = "The message is new, and on disk."
}

func (b *builder) sent(ctx context.Context, in *sendInput, req *api.NewMessage, wrong []api.Fault) (*sendOutput, error) {
	sent, err := admin.Messages{Service: b.Service}.Send(in.trace(ctx), req, in.Key, wrong...)
	if err != nil {
		return nil, err
	}
	out := &sendOutput{Status: http.StatusAccepted, Location: "/v1/messages/" + api.Segment(sent.ID), Body: sent.Accepted}
	if sent.Notification {
		out.Location = b.notificationAt(sent.ID)
	}
	if sent.Duplicate || sent.Outcome != "" && sent.State == holdfast.Delivered.String() {
		out.Status = http.StatusOK
	}
	return out, nil
}
