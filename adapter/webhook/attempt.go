package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// attempt is one request, and what became of it.
type attempt struct {
	request *request // nil: it could not be made
	answer  answer
	took    time.Duration
	failure *holdfast.Failure // nil: a success
}

// attempt makes one request. Its deadline covers all of it: a token, names, the connection, the
// answer with its body.
func (s *Sender) attempt(ctx context.Context, t *Target, m *holdfast.Message) *attempt {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.Timeout, DefaultTimeout))
	defer cancel()
	a := &attempt{}
	if a.request, a.failure = compose(t, m, began); a.failure == nil {
		a.failure = charged(s.exchange(ctx, t, a))
	}
	a.took = time.Since(began)
	return a
}

// exchange sends the request and reads its answer.
func (s *Sender) exchange(ctx context.Context, t *Target, a *attempt) *holdfast.Failure {
	client, err := s.clientOf(t)
	if err != nil {
		return permanent("bad_tls", "the TLS settings of the subscription: %w", err)
	}
	r := a.request
	token, err := s.authorize(ctx, t, client, r.header)
	if err != nil {
		f := *holdfast.AsFailure(err) // others with the same credentials get this one too
		return exchange.Outward(&f, "the token endpoint")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url.String(), bytes.NewReader(r.body))
	if err != nil {
		return permanent("bad_url", "the request cannot be made")
	}
	req.Header = r.header
	hide := func() *secrets.Set { return s.hidden(t, r.header) }
	resp, f := client.Do(req, hide)
	if f != nil {
		return exchange.Outward(f, r.url.Host)
	}
	defer resp.Body.Close() //nolint:errcheck // the answer has been read, or is given up
	a.answer = read(resp, hide)
	if token != nil && resp.StatusCode == http.StatusUnauthorized {
		token.refuse(r.header)
	}
	return a.answer.failure()
}

// hidden returns what must appear in no text about a request.
func (s *Sender) hidden(t *Target, sent http.Header) *secrets.Set {
	hidden := t.hidden(sent)
	hidden.AddURL(s.proxy)
	return hidden
}

// charged makes of a failure what WH-02 and WH-03 want: the message keeps its schedule, and each
// attempt counts, whoever is at fault. Only what no other attempt changes parks.
func charged(f *holdfast.Failure) *holdfast.Failure {
	switch {
	case f == nil:
		return nil
	case f.Code == exchange.Forbidden:
		f.Outcome = holdfast.Permanent
	case f.Outcome == holdfast.LaneFault || f.Outcome == holdfast.Unreachable:
		f.Outcome = holdfast.Transient
	}
	return f
}

// failure classifies an answer by its status alone.
func (a *answer) failure() *holdfast.Failure {
	if a.status/100 == 2 {
		return nil
	}
	err := fmt.Errorf("the subscriber answered %d", a.status)
	f := &holdfast.Failure{Code: fmt.Sprintf("http_%d", a.status), RetryAfter: retryafter.Of(a.header), Answer: string(a.text)}
	switch {
	case a.status == http.StatusGone:
		f.Outcome = holdfast.Permanent
		err = fmt.Errorf("%w: %w", err, ErrGone)
	case a.status/100 == 3:
		err = fmt.Errorf("%w: %w", err, errRedirect)
	}
	if text := a.excerpt(); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	f.Err = err
	return f
}

var errRedirect = errors.New("redirects are not followed; change the URL of the subscription to where it leads")
