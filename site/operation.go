package site

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// OperationStatus is the status of a call (SF-21).
type OperationStatus string

// The statuses.
const (
	Submitted OperationStatus = "submitted" // on disk; no attempt has failed
	Retrying  OperationStatus = "retrying"  // an attempt has failed; another will be made
	Delivered OperationStatus = "delivered"
	Failed    OperationStatus = "failed" // the first attempt was refused permanently (SF-25)
	Parked    OperationStatus = "parked" // waits for a person
	Expired   OperationStatus = "expired"
	Discarded OperationStatus = "discarded"
)

// Operation is a call as its program sees it later.
type Operation struct {
	ID          holdfast.ID
	Category    holdfast.Category // empty: the destination is not known any more
	Destination string
	Endpoint    string
	Status      OperationStatus
	Retries     int // attempts after the first of its cycle
	Failures    int // attempts of its cycle that failed and count against its budget
	LastError   string
	Code        string // of the last attempt that failed: "http_422"
	Origin      notify.Origin
	Created     time.Time
	LastAttempt time.Time // zero: never tried
	Ended       time.Time // zero: not yet
}

// Status says what became of a call, from the site's own row, also while all
// others are away (SF-22). An id that is not kept is ErrNotFound: rows are kept
// for their retention.
func (s *Site) Status(ctx context.Context, id holdfast.ID) (Operation, error) {
	id, err := holdfast.ParseID(string(id)) // a UUID in any form is one value (SF-12)
	if err != nil {
		return Operation{}, fmt.Errorf("operation: %w: %w", holdfast.ErrInvalid, err)
	}
	r, err := s.conf.Store.Get(ctx, id)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return Operation{}, err
	}
	if err != nil || s.forwards(r.Message.Destination) {
		return Operation{}, fmt.Errorf("operation %s: %w", id, holdfast.ErrNotFound)
	}
	o := Operation{
		ID: r.Message.ID, Category: s.category(r.Message.Destination), Destination: r.Message.Destination, Endpoint: r.Message.Endpoint,
		Status: statusOf(&r), Retries: max(r.Tries-1, 0), Failures: r.Failures, LastError: r.LastError, Origin: notify.OriginOf(r.Message.Headers),
		Created: r.Created, LastAttempt: r.LastAttempt, Ended: r.Settled,
	}
	o.Origin.Site = r.Message.Source
	for _, e := range r.History {
		if e.Kind == holdfast.Attempted && e.Code != "" {
			o.Code = e.Code
		}
	}
	return o, nil
}

func (s *Site) category(destination string) holdfast.Category {
	if s.forwards(destination) {
		return holdfast.CategoryNotification
	}
	return s.conf.Destinations[destination].Category
}

func statusOf(r *holdfast.Record) OperationStatus {
	switch r.State {
	case holdfast.Delivered:
		return Delivered
	case holdfast.Expired:
		return Expired
	case holdfast.Discarded:
		if r.Reason == holdfast.ReasonRejected {
			return Failed
		}
		return Discarded
	case holdfast.Parked:
		if r.Cycle == 1 && r.Tries == 1 && r.Reason != holdfast.ReasonExhausted {
			return Failed
		}
		return Parked
	case holdfast.Pending, holdfast.Claimed:
	}
	if r.Tries > 0 {
		return Retrying
	}
	return Submitted
}
