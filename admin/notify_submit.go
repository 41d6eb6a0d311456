package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// Tell takes a notification. key gives the id if the request does not.
func (s Notifications) Tell(ctx context.Context, req *api.NewNotification, key string, wrong ...api.Fault) (taken api.NotificationAccepted, err error) {
	n := notify.Notification{
		Type: req.Type, List: req.List, Subject: req.Subject, Body: req.Body, Data: req.Data,
		Origin: notify.Origin{
			Instance: req.OriginInstance, Script: req.SourceScript, Execution: req.ExecutionID, ParentExecution: req.ParentExecutionID,
			Trace: traceOf(ctx), Enqueued: time.Now(),
		},
	}
	id, faults := idOf(req.ID, key)
	n.ID = id
	payload, err := notify.Encode(n)
	if size := int64(len(payload)); size > s.LargestPayload() {
		return taken, api.TooLong(fmt.Sprint(size), s.LargestPayload())
	}
	r, p := s.tell(ctx, n, slices.Concat(wrong, faults, api.FaultsOf(err)))
	if p != nil {
		return taken, p
	}
	return api.NotificationAccepted{ID: string(r.ID), Accepted: true, Durability: s.durability(), Duplicate: r.Duplicate}, nil
}

// tell hands a notification to the Notifier, unless there are faults.
func (s *Service) tell(ctx context.Context, n notify.Notification, faults []api.Fault) (holdfast.Receipt, *api.Problem) {
	if s.Notifier == nil {
		return holdfast.Receipt{}, s.noNotifications()
	}
	if !within(ctx, s.here("")) {
		return holdfast.Receipt{}, outside("site", s.From())
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
func (s *Service) standing(ctx context.Context, text string) (d api.NotificationDetail, err error) {
	if s.Notifier == nil {
		return d, s.noNotifications()
	}
	if !within(ctx, s.here("")) {
		return d, outside("site", s.From())
	}
	id, p := parseID(text)
	if p != nil {
		return d, p
	}
	is, err := s.Notifier.Status(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return d, api.NotFound.Problem(fmt.Sprintf("no notification %s is known; it never was, or its retention is over", id),
			api.Fault{Field: "id", Value: api.Clip(string(id)), Problem: "is not the id of a notification that is kept"})
	case errors.Is(err, holdfast.ErrUnavailable):
		return d, api.Unavailable.Problem(fmt.Sprintf("the notification is not at this site any more, and central cannot be asked now: %v; ask again later", err)).
			With("Retry-After", "5")
	case err != nil:
		return d, s.refuse(ctx, "look for the notification", err)
	}
	return api.NotificationDetail{NotificationStatus: notificationStatusOf(&is)}, nil
}

func (s *Service) noNotifications() *api.Problem {
	return api.Unsupported.Problem(fmt.Sprintf("node %s takes no notifications; send them to a node of role site, central or standalone that does", s.Name))
}
