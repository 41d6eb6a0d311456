package link

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// record is a message as a site shows it to its central.
type record struct {
	Seq           int64                 `json:"seq"`
	ID            holdfast.ID           `json:"id"`
	Source        string                `json:"source"`
	Destination   string                `json:"destination"`
	Category      holdfast.Category     `json:"category,omitempty"` // of the destination; empty: it has none, or the site's program is older than this field
	Endpoint      string                `json:"endpoint"`
	Kind          holdfast.Kind         `json:"kind"`
	CorrelationID string                `json:"correlationId,omitempty"`
	OrderingKey   string                `json:"orderingKey,omitempty"`
	Headers       map[string]string     `json:"headers,omitempty"`
	Payload       []byte                `json:"payload,omitempty"`
	State         holdfast.State        `json:"state"`
	Reason        holdfast.Reason       `json:"reason,omitempty"`
	Failures      int                   `json:"failures"`
	Tries         int                   `json:"tries"`
	Cycle         int                   `json:"cycle"`
	Created       time.Time             `json:"created"`
	Due           time.Time             `json:"due,omitzero"`
	Expires       time.Time             `json:"expires,omitzero"`
	HeldUntil     time.Time             `json:"heldUntil,omitzero"`
	LastAttempt   time.Time             `json:"lastAttempt,omitzero"`
	LastError     string                `json:"lastError,omitempty"`
	Settled       time.Time             `json:"settled,omitzero"`
	Discarding    bool                  `json:"discarding,omitempty"`
	Size          int                   `json:"size"`
	Retry         *holdfast.RetryPolicy `json:"retry,omitempty"` // its own
	History       []happened            `json:"history,omitempty"`
}

// happened is one event of a record.
type happened struct {
	Seq     int64              `json:"seq"`
	Kind    holdfast.EntryKind `json:"kind"`
	State   holdfast.State     `json:"state"`
	Reason  holdfast.Reason    `json:"reason,omitempty"`
	At      time.Time          `json:"at"`
	Cycle   int                `json:"cycle"`
	Attempt int                `json:"attempt,omitempty"`
	Outcome holdfast.Outcome   `json:"outcome"`
	Charged bool               `json:"charged,omitempty"`
	Code    string             `json:"code,omitempty"`
	Error   string             `json:"error,omitempty"`
	Maybe   bool               `json:"maybe,omitempty"`
	Took    time.Duration      `json:"tookNs,omitempty"`
	Actor   string             `json:"actor,omitempty"`
}

// page is one page of records.
type page struct {
	Records []record `json:"records"`
	Next    string   `json:"next,omitempty"`
}

func recordOf(r *holdfast.Record) record {
	m := &r.Message
	out := record{
		Seq: r.Seq, ID: m.ID, Source: m.Source, Destination: m.Destination, Endpoint: m.Endpoint, Kind: m.Kind,
		CorrelationID: m.CorrelationID, OrderingKey: m.OrderingKey, Headers: m.Headers, Payload: m.Payload, Retry: m.Retry,
		State: r.State, Reason: r.Reason, Failures: r.Failures, Tries: r.Tries, Cycle: r.Cycle, Created: r.Created, Due: r.Due,
		Expires: r.Expires, HeldUntil: r.HeldUntil, LastAttempt: r.LastAttempt, LastError: r.LastError, Settled: r.Settled, Discarding: r.Discarding, Size: r.Size,
	}
	for _, e := range r.History {
		out.History = append(out.History, happened{
			Seq: e.Seq, Kind: e.Kind, State: e.State, Reason: e.Reason, At: e.At, Cycle: e.Cycle, Attempt: e.Attempt, Outcome: e.Outcome,
			Charged: e.Charged, Code: e.Code, Error: e.Error, Maybe: e.Maybe, Took: e.Took, Actor: e.Actor,
		})
	}
	return out
}

// Limits of what a site says about itself and its messages.
const (
	pageLimit    = 500 // records of a page, as of holdfast.Query
	cursorLen    = 256
	errorLen     = 1000
	headersShown = holdfast.MaxHeaders
)

// whole converts the page to the library's form. It checks what the request asked for: at most
// limit records, newest first, and a next page only after records. So a caller that follows the
// pages always gets on. Held messages have no order, and a page of them may be empty, as at the
// site itself.
func (p *page) whole(limit int, held bool) (holdfast.Page, error) {
	if limit <= 0 || limit > pageLimit {
		limit = pageLimit
	}
	if len(p.Records) > limit {
		return holdfast.Page{}, fmt.Errorf("it has %d messages, more than the requested %d", len(p.Records), limit)
	}
	if len(p.Next) > cursorLen || strings.ContainsFunc(p.Next, shown.Acts) || p.Next != "" && len(p.Records) == 0 && !held {
		return holdfast.Page{}, errors.New("its cursor for the next page is invalid")
	}
	out := holdfast.Page{Records: make([]holdfast.Record, len(p.Records)), Next: p.Next}
	for i := range p.Records {
		switch {
		case held && p.Records[i].HeldUntil.IsZero():
			return holdfast.Page{}, errors.New("it was asked for held messages, and one is not held; its program may be older than central's")
		case !held && i > 0 && p.Records[i].Seq >= p.Records[i-1].Seq:
			return holdfast.Page{}, errors.New("its messages are out of order")
		}
		out.Records[i] = p.Records[i].whole()
	}
	return out, nil
}

// whole converts the record to the library's form. The site wrote all of its text. It is bounded
// and made fit to show here, once for every caller.
func (r *record) whole() holdfast.Record {
	out := holdfast.Record{
		Message: holdfast.Message{
			ID: name(r.ID), Source: name(r.Source), Destination: name(r.Destination), Endpoint: name(r.Endpoint), Kind: r.Kind,
			CorrelationID: name(r.CorrelationID), OrderingKey: name(r.OrderingKey), Headers: headers(r.Headers), Payload: r.Payload, Retry: ownRetry(r.Retry),
		},
		Category: name(r.Category),
		Seq:      r.Seq, State: r.State, Reason: name(r.Reason), Failures: max(r.Failures, 0), Tries: max(r.Tries, 0), Cycle: max(r.Cycle, 0),
		Created: r.Created, Due: r.Due, Expires: r.Expires, HeldUntil: r.HeldUntil, LastAttempt: r.LastAttempt, LastError: shown.Line(r.LastError, errorLen),
		Settled: r.Settled, Discarding: r.Discarding, Size: max(r.Size, 0),
	}
	for _, e := range r.History {
		out.History = append(out.History, holdfast.Entry{
			Seq: e.Seq, ID: out.Message.ID, Destination: out.Message.Destination, Kind: e.Kind, State: e.State, Reason: name(e.Reason), At: e.At,
			Cycle: max(e.Cycle, 0), Attempt: max(e.Attempt, 0), Outcome: e.Outcome, Charged: e.Charged, Code: name(e.Code),
			Error: shown.Line(e.Error, errorLen), Maybe: e.Maybe, Took: max(e.Took, 0), Actor: name(e.Actor),
		})
	}
	return out
}

// ownRetry returns the policy that another machine sent, or nil if no message could have it.
func ownRetry(p *holdfast.RetryPolicy) *holdfast.RetryPolicy {
	if p == nil || p.Validate() != nil {
		return nil
	}
	return p
}

// name bounds a short text from another machine.
func name[T ~string](s T) T { return T(shown.Line(string(s), holdfast.MaxNameLen)) }

func headers(h map[string]string) map[string]string {
	out := make(map[string]string, min(len(h), headersShown))
	for k, v := range h {
		if len(out) == headersShown {
			break
		}
		out[name(k)] = shown.Line(v, errorLen)
	}
	return out
}
