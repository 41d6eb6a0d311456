package link

import (
	"time"

	"github.com/holdfast-mq/holdfast"
)

// record is a message as a site shows it to its central.
type record struct {
	Seq           int64             `json:"seq"`
	ID            holdfast.ID       `json:"id"`
	Source        string            `json:"source"`
	Destination   string            `json:"destination"`
	Category      holdfast.Category `json:"category,omitempty"` // of the destination; empty: none, or a site that is older than this field
	Endpoint      string            `json:"endpoint"`
	Kind          holdfast.Kind     `json:"kind"`
	CorrelationID string            `json:"correlationId,omitempty"`
	OrderingKey   string            `json:"orderingKey,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	Payload       []byte            `json:"payload,omitempty"`
	State         holdfast.State    `json:"state"`
	Reason        holdfast.Reason   `json:"reason,omitempty"`
	Failures      int               `json:"failures"`
	Tries         int               `json:"tries"`
	Cycle         int               `json:"cycle"`
	Created       time.Time         `json:"created"`
	Due           time.Time         `json:"due,omitzero"`
	Expires       time.Time         `json:"expires,omitzero"`
	LastAttempt   time.Time         `json:"lastAttempt,omitzero"`
	LastError     string            `json:"lastError,omitempty"`
	Settled       time.Time         `json:"settled,omitzero"`
	Size          int               `json:"size"`
	History       []happened        `json:"history,omitempty"`
}

// happened is one event of a record.
type happened struct {
	Seq     int64              `json:"seq"`
	Kind    holdfast.EventKind `json:"kind"`
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
		CorrelationID: m.CorrelationID, OrderingKey: m.OrderingKey, Headers: m.Headers, Payload: m.Payload,
		State: r.State, Reason: r.Reason, Failures: r.Failures, Tries: r.Tries, Cycle: r.Cycle, Created: r.Created, Due: r.Due,
		Expires: r.Expires, LastAttempt: r.LastAttempt, LastError: r.LastError, Settled: r.Settled, Size: r.Size,
	}
	for _, e := range r.History {
		out.History = append(out.History, happened{
			Seq: e.Seq, Kind: e.Kind, State: e.State, Reason: e.Reason, At: e.At, Cycle: e.Cycle, Attempt: e.Attempt, Outcome: e.Outcome,
			Charged: e.Charged, Code: e.Code, Error: e.Error, Maybe: e.Maybe, Took: e.Took, Actor: e.Actor,
		})
	}
	return out
}

// whole is the record as the library has it.
func (r *record) whole() holdfast.Record {
	out := holdfast.Record{
		Message: holdfast.Message{
			ID: r.ID, Source: r.Source, Destination: r.Destination, Endpoint: r.Endpoint, Kind: r.Kind,
			CorrelationID: r.CorrelationID, OrderingKey: r.OrderingKey, Headers: r.Headers, Payload: r.Payload,
		},
		Category: holdfast.Category(plain(string(r.Category), holdfast.MaxNameLen)),
		Seq:      r.Seq, State: r.State, Reason: r.Reason, Failures: r.Failures, Tries: r.Tries, Cycle: r.Cycle, Created: r.Created, Due: r.Due,
		Expires: r.Expires, LastAttempt: r.LastAttempt, LastError: plain(r.LastError, 1000), Settled: r.Settled, Size: r.Size,
	}
	for _, e := range r.History {
		out.History = append(out.History, holdfast.Event{
			Seq: e.Seq, ID: r.ID, Destination: r.Destination, Kind: e.Kind, State: e.State, Reason: e.Reason, At: e.At, Cycle: e.Cycle,
			Attempt: e.Attempt, Outcome: e.Outcome, Charged: e.Charged, Code: e.Code, Error: plain(e.Error, 1000), Maybe: e.Maybe, Took: e.Took, Actor: e.Actor,
		})
	}
	return out
}
