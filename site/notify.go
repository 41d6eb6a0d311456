package site

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// Draft is a notification that is being written. Each method returns a new Draft and leaves its
// receiver unchanged.
type Draft struct {
	site  *Site
	n     notify.Notification
	fault error
}

// Notify begins a notification to the recipients on a list. Only central knows the lists: whether
// the list exists turns out at delivery.
func (s *Site) Notify(list string) Draft {
	return Draft{site: s, n: notify.Notification{List: list}}
}

// From sets the instance, script and run that send it. The site is the Site's.
func (d Draft) From(o notify.Origin) Draft {
	d.n.Origin = o
	return d
}

// Type sets the type of the notification, for people and rules.
func (d Draft) Type(name string) Draft {
	d.n.Type = name
	return d
}

// Data adds data for programs that receive the notification. It is encoded as JSON.
func (d Draft) Data(v any) Draft {
	d.n.Data, d.fault = json.Marshal(v)
	return d
}

// ID makes it safe to send again: the same id with the same content is the same notification.
// Without ID a new id is made.
func (d Draft) ID(id holdfast.ID) Draft {
	d.n.ID = id
	return d
}

// Send takes the notification and returns its id as soon as it is on disk. The same id finds it
// here and at central (NO-04). The subject is one line: line breaks in it become spaces. After an
// error, nothing was taken.
func (d Draft) Send(ctx context.Context, subject, body string) (holdfast.ID, error) {
	if d.fault != nil {
		return "", fmt.Errorf("%w: %w", holdfast.ErrInvalid, &holdfast.FieldError{Field: "data", Problem: "cannot be encoded: " + d.fault.Error()})
	}
	if d.site.forwarder == nil {
		return "", errAlone
	}
	d.n.Subject, d.n.Body = subject, body
	r, err := d.site.forwarder.Submit(ctx, d.n)
	return r.ID, err
}

// NotificationStatus returns the standing of a notification; see Forwarder.Status.
func (s *Site) NotificationStatus(ctx context.Context, id holdfast.ID) (notify.Standing, error) {
	if s.forwarder == nil {
		return notify.Standing{}, errAlone
	}
	return s.forwarder.Status(ctx, id)
}

var errAlone = fmt.Errorf("notify: %w: the site is Alone and forwards nothing", holdfast.ErrState)

// forwards reports whether a destination is the lane to central.
func (s *Site) forwards(to string) bool { return to == notify.Central && s.forwarder != nil }
