package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
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
	if result != nil {
		e.Outcome, e.Error = holdfast.Transient, "the node failed"
		if p, ok := errors.AsType[*api.Problem](result); ok {
			e.Error = api.Clip(p.Detail)
			if p.Status < 500 {
				e.Outcome = holdfast.Permanent
			}
			if denied(ctx, p) {
				more, tell := s.denials.take(denial{e.Actor, operation}, time.Now())
				if !tell {
					return nil
				}
				if more > 0 {
					e.Error = fmt.Sprintf("%s (and %d times more since the last entry)", e.Error, more)
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
	err := s.Calls.Append(ctx, e)
	if err != nil {
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

// denied reports whether a caller was refused for lack of rights. An id that is out of scope looks like one
// that is not kept.
func denied(ctx context.Context, p *api.Problem) bool {
	may := Granted(ctx)
	return p.Status == http.StatusForbidden || p.Status == http.StatusNotFound && !may.Whole()
}

// Limits of what callers without rights write into the journal.
const (
	denialEvery = time.Minute
	mostDenials = 1000 // token and operation; others share one more
)

// denial is one caller who is refused one operation.
type denial struct{ actor, operation string }

// denials lets through one entry a minute for each caller and operation, and counts the others.
type denials struct {
	mu   sync.Mutex
	last map[denial]tally
}

type tally struct {
	at   time.Time // of the last entry
	more int       // since then
}

// take reports whether to write an entry now, and how many were not written since the last one.
func (d *denials) take(who denial, now time.Time) (more int, tell bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		d.last = map[denial]tally{}
	}
	t, known := d.last[who]
	if !known && len(d.last) >= mostDenials {
		for other, t := range d.last {
			if now.Sub(t.at) >= denialEvery {
				delete(d.last, other)
			}
		}
		if len(d.last) >= mostDenials {
			who = denial{}
			t, known = d.last[who]
		}
	}
	if known && now.Sub(t.at) < denialEvery {
		t.more++
		d.last[who] = t
		return 0, false
	}
	d.last[who] = tally{at: now}
	return t.more, true
}
