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

type notifyInput struct {
	WithBody
	Key string `header:"Idempotency-Key" doc:"Gives the id if the body does not."`
	WithTrace
}

type notifyOutput struct {
	Status   int
	Location string `header:"Location" doc:"Where the notification can be watched."`
	Body     api.NotificationAccepted
}

func notifying(b *builder) {
	const none = "This node takes no notifications."
	asked(b, route{
		method: http.MethodPost, path: "/v1/notifications", id: "send-notification", sends: true, tag: "notifications", right: api.Send, scoped: true,
		summary: "Tell people",
		description: "The answer comes after the notification is on disk; a site forwards it to central, which knows who is on the list. " +
			"The same id with the same type, list, subject, body and data is the same notification: sending it again is safe and changes nothing.",
		status: http.StatusAccepted,
		problems: map[api.Sort]string{
			api.Conflict: "The id belongs to a notification with other content.",
			api.TooLarge: fmt.Sprintf("The notification is larger than this node takes: %d bytes.", b.LargestPayload()),
			api.DiskFull: "The disk is full; nothing was accepted.", api.Unsupported: none,
		},
		bodyRequired: true, bodyLimit: b.LargestPayload() + envelopeRoom,
		requestSample: json.RawMessage(`{"list":"operators","subject":"Tank 4 is full","body":"Level 98 %."}`),
	}, b.notified)
	responses := b.operation(http.MethodPost, "/v1/notifications").Responses
	repeat := *responses["202"]
	repeat.Description = "The id was known with the same content; this request changed nothing."
	responses["200"] = &repeat
	responses["202"].Description = "The notification is new, and on disk."
}

func (b *builder) notified(ctx context.Context, in *notifyInput, req *api.NewNotification, wrong []api.Fault) (*notifyOutput, error) {
	taken, err := admin.Notifications{Service: b.Service}.Tell(in.trace(ctx), req, in.Key, wrong...)
	if err != nil {
		return nil, err
	}
	out := &notifyOutput{Status: http.StatusAccepted, Location: b.notificationAt(taken.ID), Body: taken}
	if taken.Duplicate {
		out.Status = http.StatusOK
	}
	return out, nil
}

// notificationAt returns where to watch a notification of this node's programs.
func (b *builder) notificationAt(id string) string {
	at := "/v1/notifications/" + api.Segment(id)
	if b.Notify != nil { // other sites may have sent the same id
		at += "?site=" + url.QueryEscape(b.From())
	}
	return at
}
