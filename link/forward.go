package link

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport"
)

// codeUndecodable is the code of a message whose content cannot be decoded.
const codeUndecodable = "undecodable"

// usualEnvelope is about how many bytes an envelope adds to a payload.
const usualEnvelope = 1 << 10

// errStalled is the cause with which a stalled link ends its requests.
var errStalled = errors.New("the link made no progress; its connections were closed")

// flight is a request under way. A stalled link can tear it down.
type flight struct {
	cut   context.CancelCauseFunc
	until time.Time // a large request may take until then
}

// fly derives a context that ends when the link is torn down.
func (s *Site) fly(ctx context.Context, until time.Time) (flying context.Context, land func()) {
	ctx, cut := context.WithCancelCause(ctx)
	f := &flight{cut, until}
	s.mu.Lock()
	s.flights[f] = struct{}{}
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		delete(s.flights, f)
		s.mu.Unlock()
		cut(nil)
	}
}

// BatchSize returns the batch size that central has announced, or 1 before its first announcement.
func (s *Site) BatchSize() int {
	client, err := s.connect()
	if err != nil {
		return 1
	}
	return client.BatchSize()
}

// Deliver forwards one message, as DeliverBatch does.
func (s *Site) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	r := s.DeliverBatch(ctx, []holdfast.Message{m})[0]
	return r.Receipt, r.Err
}

// DeliverBatch forwards messages in the name of the site, whatever Source they have (SF-19). A nil
// error means that central has committed the message.
func (s *Site) DeliverBatch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	id, err := s.identity.read()
	client, fault := s.connect()
	if err := errors.Join(err, fault); err != nil {
		results := make([]holdfast.Result, len(ms))
		for i := range ms {
			results[i] = holdfast.Result{
				Receipt: holdfast.Receipt{ID: ms[i].ID},
				Err:     &holdfast.Failure{Outcome: holdfast.LaneFault, Code: transport.CodeCredential, Err: err},
			}
		}
		return results
	}
	return s.forward(ctx, client, id.Site, ms)
}

func (s *Site) forward(ctx context.Context, client *transport.Client, site string, ms []holdfast.Message) []holdfast.Result {
	largest := 0
	for i := range ms {
		largest = max(largest, len(ms[i].Payload))
	}
	var until time.Time
	if most := client.Patience(largest + usualEnvelope); most > s.conf.Timeout {
		until = time.Now().Add(most)
	}
	ctx, land := s.fly(ctx, until)
	defer land()
	own := make([]holdfast.Message, len(ms))
	for i, m := range ms {
		m.Source = site // the site's credential decides, not the writer of the row
		own[i] = m
	}
	results := client.DeliverBatch(ctx, own)
	through := false
	for i := range results {
		results[i].Err = verdict(results[i].Err)
		through = through || results[i].Err == nil || holdfast.AsFailure(results[i].Err).Outcome == holdfast.Permanent
	}
	if through {
		s.moved()
	}
	return results
}

// verdict turns a permanent failure into a transient one unless central itself has judged the
// message (SF-19, SF-20): a proxy's 404 must not park a notification.
func verdict(err error) error {
	if err == nil {
		return nil
	}
	f := *holdfast.AsFailure(err)
	if f.Outcome != holdfast.Permanent || f.Code == transport.CodeWrongSource || f.Code == codeList {
		return err
	}
	if strings.HasPrefix(f.Code, "http_") { // a bare status: the answer holds no reply of central
		f.Outcome, f.Reason = holdfast.Transient, ""
		return &f
	}
	switch f.Reason {
	case holdfast.ReasonConflict, holdfast.ReasonTooLarge, holdfast.ReasonTooOld:
		return err
	case holdfast.ReasonUndecodable:
		f.Code = codeUndecodable
	case holdfast.ReasonPermanent, holdfast.ReasonExhausted, holdfast.ReasonOperator, holdfast.ReasonRejected, holdfast.ReasonNoEndpoint:
		f.Outcome, f.Reason = holdfast.Transient, ""
	default:
		f.Outcome, f.Reason = holdfast.Transient, ""
	}
	return &f
}

// moved notes that messages get through.
func (s *Site) moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress, s.status.Stalled = time.Now(), time.Time{}
}

// tearDown cuts off requests that make no progress: on a half-open connection the system would let
// them wait for many minutes. A message that is large for its line keeps the time that it needs.
func (s *Site) tearDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.flights {
		if !time.Now().Before(f.until) {
			f.cut(errStalled)
		}
	}
	if s.client != nil {
		s.client.Close()
	}
}
