package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// Notifier is the way of notifications out of a node: at a site to central,
// elsewhere to their channels. Its methods are called concurrently.
type Notifier interface {
	// Submit takes a notification durably; it has an id. An id that is known
	// with the same content is a Duplicate, with other content ErrConflict.
	Submit(ctx context.Context, n notify.Notification) (holdfast.Receipt, error)
	// Status says how a notification stands. An id that nobody knows is
	// ErrNotFound. ErrUnavailable: it is at central, which cannot be asked now.
	Status(ctx context.Context, id holdfast.ID) (notify.Standing, error)
}

type notifyInput struct {
	Key     string `header:"Idempotency-Key" doc:"Gives the id, where the body does not."`
	Content body
}

type notifyOutput struct {
	Status   int
	Location string `header:"Location" doc:"Where the notification can be watched."`
	Body     api.NotificationAccepted
}

func (b *builder) notifying() {
	const none = "This node takes no notifications."
	handle(b, route{
		method: http.MethodPost, path: "/v1/notifications", id: "send-notification", tag: "notifications", role: api.Operate,
		summary: "Tell people",
		description: "The answer comes after the notification is on disk; a site forwards it to central, which knows who is on the list. " +
			"The same id with the same type, list, subject, body and data is the same notification: sending it again is safe and changes nothing.",
		status: http.StatusAccepted,
		problems: map[api.Sort]string{
			api.Conflict: "The id belongs to a notification with other content.",
			api.TooLarge: fmt.Sprintf("The notification is larger than this node takes: %d bytes.", b.maxPayload()),
			api.DiskFull: "The disk is full; nothing was accepted.", api.Unsupported: none,
		},
		request: reflect.TypeFor[api.NewNotification](), bodyRequired: true, bodyLimit: b.maxPayload() + envelopeRoom,
		requestSample: json.RawMessage(`{"list":"operators","subject":"Tank 4 is full","body":"Level 98 %."}`),
	}, b.notify)
	responses := b.operation(http.MethodPost, "/v1/notifications").Responses
	repeat := *responses["202"]
	repeat.Description = "The id was known with the same content; this request changed nothing."
	responses["200"] = &repeat
	responses["202"].Description = "The notification is new, and on disk."
}

func (s *Server) notify(ctx context.Context, in *notifyInput) (*notifyOutput, error) {
	var req api.NewNotification
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	n := notify.Notification{
		Type: req.Type, List: req.List, Subject: req.Subject, Body: req.Body, Data: req.Data,
		Origin: notify.Origin{
			Instance: req.OriginInstance, Script: req.SourceScript, Execution: req.ExecutionID, ParentExecution: req.ParentExecutionID, Enqueued: time.Now(),
		},
	}
	id, wrong := idOf(req.ID, in.Key)
	n.ID = id
	payload, err := notify.Encode(n)
	if size := int64(len(payload)); size > s.maxPayload() {
		return nil, tooLarge(fmt.Sprint(size), s.maxPayload())
	}
	r, p := s.tell(ctx, n, append(faults, append(wrong, api.FaultsOf(err)...)...))
	if p != nil {
		return nil, p
	}
	out := &notifyOutput{
		Status: http.StatusAccepted, Location: s.notificationAt(r.ID),
		Body: api.NotificationAccepted{ID: string(r.ID), Accepted: true, Durability: s.durability(), Duplicate: r.Duplicate},
	}
	if r.Duplicate {
		out.Status = http.StatusOK
	}
	return out, nil
}

// notificationAt is where a notification of this node's programs can be watched.
func (s *Server) notificationAt(id holdfast.ID) string {
	at := "/v1/notifications/" + api.Segment(string(id))
	if s.Notify != nil { // others may have sent the same id
		at += "?site=" + url.QueryEscape(s.source())
	}
	return at
}

// tell hands a notification over, unless there are faults.
func (s *Server) tell(ctx context.Context, n notify.Notification, faults []api.Fault) (holdfast.Receipt, *api.Problem) {
	if s.Notifier == nil {
		return holdfast.Receipt{}, s.noNotifications()
	}
	if n.ID == "" {
		n.ID = holdfast.NewID()
	} else if id, err := holdfast.ParseID(string(n.ID)); err != nil {
		faults = append(faults, api.FaultsOf(err)...)
	} else {
		n.ID = id
	}
	if faults = append(faults, api.FaultsOf(n.Origin.Validate())...); len(faults) > 0 {
		return holdfast.Receipt{}, api.Faulty(withoutRepeats(faults)...)
	}
	r, err := s.Notifier.Submit(ctx, n)
	switch {
	case errors.Is(err, holdfast.ErrConflict):
		return r, api.Conflict.Problem(
			fmt.Sprintf("notification %s is known with other content; take a new id for a new notification", n.ID),
			api.Fault{Field: "id", Value: string(n.ID), Problem: "belongs to a notification with other content"})
	case err != nil:
		return r, inDoubt(s.refuse(ctx, "store the notification", err), err, n.ID)
	case r.State == holdfast.Discarded, r.State == holdfast.Expired: // the id was known
		return r, endedBefore(&holdfast.EndedError{ID: r.ID, State: r.State})
	}
	return r, nil
}

// standing is what a node knows of a notification that does not bring it to
// people by itself.
func (s *Server) standing(ctx context.Context, text string) (*recordOutput, error) {
	if s.Notifier == nil {
		return nil, s.noNotifications()
	}
	id, p := parseID(text)
	if p != nil {
		return nil, p
	}
	is, err := s.Notifier.Status(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return nil, api.NotFound.Problem(fmt.Sprintf("no notification %s is known; it never was, or its retention is over", id),
			api.Fault{Field: "id", Value: api.Clip(string(id)), Problem: "is not the id of a notification that is kept"})
	case errors.Is(err, holdfast.ErrUnavailable):
		return nil, api.Unavailable.Problem(fmt.Sprintf("the notification is not at this site any more, and central cannot be asked now: %v; ask again later", err)).
			With("Retry-After", "5")
	case err != nil:
		return nil, s.refuse(ctx, "look for the notification", err)
	}
	return &recordOutput{api.NotificationDetail{NotificationStatus: notificationStatusOf(&is)}}, nil
}

func (s *Server) noNotifications() *api.Problem {
	return api.Unsupported.Problem(fmt.Sprintf("node %s takes no notifications; send them to a node of role site, central or standalone that does", s.Node))
}
