package site

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// Draft is a notification that is being written. Its methods return another
// one, and leave it as it is.
type Draft struct {
	site  *Site
	n     notify.Notification
	fault error
}

// Notify begins a notification to those on a list. Who they are is known at
// central only; whether there is such a list is found out when it is delivered.
func (s *Site) Notify(list string) Draft {
	return Draft{site: s, n: notify.Notification{List: list}}
}

// From says which instance, script and run sends it. The site is the Site's.
func (d Draft) From(o notify.Origin) Draft {
	d.n.Origin = o
	return d
}

// Type names the sort of notification, for people and rules.
func (d Draft) Type(name string) Draft {
	d.n.Type = name
	return d
}

// Data adds what a program that receives the notification may read; it is
// encoded as JSON.
func (d Draft) Data(v any) Draft {
	d.n.Data, d.fault = json.Marshal(v)
	return d
}

// ID makes the sending safe to repeat: the same id with the same content is the
// same notification. Without it one is minted.
func (d Draft) ID(id holdfast.ID) Draft {
	d.n.ID = id
	return d
}

// Send takes the notification and returns its id at once, after it is on disk;
// the same id leads to it here and at central (NO-04). The subject is one line:
// breaks in it become spaces. Errors mean that nothing was taken.
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

// NotificationStatus says how a notification stands; see Forwarder.Status.
func (s *Site) NotificationStatus(ctx context.Context, id holdfast.ID) (notify.Standing, error) {
	if s.forwarder == nil {
		return notify.Standing{}, errAlone
	}
	return s.forwarder.Status(ctx, id)
}

var errAlone = fmt.Errorf("notify: %w: the site is Alone, and forwards nothing", holdfast.ErrState)

// forwards says whether a destination is the way to central.
func (s *Site) forwards(to string) bool { return to == notify.Central && s.forwarder != nil }
