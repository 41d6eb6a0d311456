package webhook

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Exchange is one request and its answer, for people. No part of it shows a secret of the target.
type Exchange struct {
	URL      string // to which Body was posted
	Header   http.Header
	Body     []byte
	Status   int // zero: there was no answer
	Answer   http.Header
	Response []byte // what is kept of the answer's body, decoded, as UTF-8
	Cut      bool   // the answer's body was longer, or broke off
	Took     time.Duration
	Reused   bool              // the connection had been used before
	Failure  *holdfast.Failure // nil: a success
}

// Send makes one exchange. It is an attempt as each other: the subscriber gets the message.
func (s *Sender) Send(ctx context.Context, t *Target, m *holdfast.Message) *Exchange {
	began := time.Now()
	e := &Exchange{URL: t.URL, Body: m.Payload}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(m.Payload))
	if err != nil {
		e.Failure = &holdfast.Failure{Outcome: holdfast.Permanent, Code: "bad_url"}
		return e
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(HeaderID, string(m.ID))
	resp, f := s.client.Do(req, nil)
	if e.Took = time.Since(began); f != nil {
		e.Failure = f
		return e
	}
	defer resp.Body.Close() //nolint:errcheck // the answer is not read
	if e.Status = resp.StatusCode; e.Status/100 != 2 {
		e.Failure = &holdfast.Failure{}
	}
	return e
}

func (e *Exchange) receipt(id holdfast.ID) holdfast.Receipt {
	return holdfast.Receipt{ID: id, State: holdfast.Delivered, Response: e.Response}
}

// Validate returns all faults of a target, each a *holdfast.FieldError, without asking the network.
func (s *Sender) Validate(t *Target) error {
	if t.URL == "" {
		return &holdfast.FieldError{Field: "url", Problem: "is missing"}
	}
	return nil
}
