package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
)

// CallLog is told of each call that may change something; a holdfast.Journal is one.
type CallLog interface {
	Append(ctx context.Context, entries ...holdfast.Entry) error
}

// callBound is how long an answer waits for the journal.
const callBound = 2 * time.Second

// Called tells Calls about a call that has ended: its operation, its subject and its result. detail is
// keys and values of the entry's detail. The answer waits for it for a moment, and is the same if it
// fails (AU-09). So is the error, which is for a call that must not go on without its entry.
func (s *Service) Called(ctx context.Context, operation, subject string, result error, detail ...any) error {
	if s.Calls == nil {
		return nil
	}
	e := holdfast.Entry{Kind: holdfast.Called, Code: operation, Subject: api.Clip(subject), Actor: api.Clip(Actor(ctx)), Outcome: holdfast.Succeeded}
	now := time.Now().UTC()
	lost := audit.Missed{Calls: 1, Since: now, Until: now} // if the entry cannot be written
	if result != nil {
		e.Outcome, e.Error = holdfast.Transient, "the node failed"
		if p, ok := errors.AsType[*api.Problem](result); ok {
			e.Error = api.Clip(p.Detail)
			if p.Status < 500 {
				e.Outcome = holdfast.Permanent
			}
			if fruitless(p) {
				before, tell := s.refusals.take(refusal{e.Actor, operation, p.Status}, now)
				if !tell {
					return nil
				}
				if before.more > 0 {
					lost.Calls, lost.Since = lost.Calls+int64(before.more), before.at
					e.Error = fmt.Sprintf("%s (and %d times more since the last entry)", e.Error, before.more)
				}
			}
		}
	}
	more := map[string]any{}
	for i := 0; i+1 < len(detail); i += 2 {
		more[fmt.Sprint(detail[i])] = detail[i+1]
	}
	if b, err := json.Marshal(more); err == nil && len(more) > 0 && len(b) <= holdfast.MaxDetail {
		e.Detail = b
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callBound)
	defer cancel()
	left, told := s.refusals.left(now)
	err := s.Calls.Append(ctx, append(left, e)...)
	if err != nil {
		s.missed.add(lost)
		s.missed.add(told)
		s.Log().LogAttrs(ctx, slog.LevelWarn, "API call not written to the journal", slog.String("operation", operation), slog.String("actor", e.Actor), slog.Any("error", err))
	}
	return err
}

// Denied tells Calls about a caller who lacks the right to an operation.
func (s *Service) Denied(ctx context.Context, operation string, p *api.Problem) {
	_ = s.Called(ctx, operation, "", p) // it is logged
}

// IsDenied reports whether an error says that the caller's rights do not suffice.
func IsDenied(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Status == http.StatusForbidden
}
