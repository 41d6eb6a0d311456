package webhook

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// Exchange is one request and its answer, for people. No part of it shows a secret of the target.
type Exchange struct {
	URL     string // to which Body was posted
	Header  http.Header
	Body    []byte // as it was signed and sent
	Status  int    // zero: there was no answer
	Answer  http.Header
	Text    string // what is kept of the answer's body, decoded
	Cut     bool   // the answer's body was longer, broke off, or cannot be decoded
	Took    time.Duration
	Failure *holdfast.Failure // nil: a success
}

// Try makes one exchange and shows it. The subscriber gets the message as in any other attempt.
func (s *Sender) Try(ctx context.Context, t *Target, m *holdfast.Message) *Exchange {
	a := s.attempt(ctx, t, m)
	e := &Exchange{
		URL: secrets.URL(t.URL), Status: a.answer.status, Text: string(a.answer.text), Cut: a.answer.cut, Took: a.took, Failure: a.failure,
	}
	if a.request == nil {
		return e
	}
	hidden := s.hidden(t, a.request.header)
	e.Header, e.Body = redacted(hidden, a.request.header), a.request.body
	e.Answer = redacted(hidden, a.answer.header)
	return e
}

// redacted returns headers fit to be shown. Values may be any bytes.
func redacted(hidden *secrets.Set, all http.Header) http.Header {
	clean := make(http.Header, len(all))
	for name, values := range all {
		for _, value := range values {
			clean[name] = append(clean[name], shown.Line(hidden.Clean(value), mostKept))
		}
	}
	return clean
}
