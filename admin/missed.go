package admin

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
)

// missed counts calls whose entries could not be written, so that the journal tells of them once it can be written. It is
// in memory: while the disk is full there is no other place.
type missed struct {
	mu sync.Mutex
	audit.Missed
}

// add counts calls that were missed from one time to another.
func (m *missed) add(more audit.Missed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if more.Calls == 0 {
		return
	}
	if m.Calls == 0 || more.Since.Before(m.Since) {
		m.Since = more.Since
	}
	if more.Until.After(m.Until) {
		m.Until = more.Until
	}
	m.Calls += more.Calls
}

// take returns what was counted, and begins anew.
func (m *missed) take() audit.Missed {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.Missed
	m.Missed = audit.Missed{}
	return all
}

// missedEvery is how often the node tries to tell of calls that were missed.
const missedEvery = 10 * time.Second

// TellMissed tells Calls, until ctx ends and once more then, of calls that could not be written when they ended.
func (s *Service) TellMissed(ctx context.Context) error {
	tick := time.NewTicker(missedEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.tellMissed(ctx)
			return nil
		case <-tick.C:
			s.tellMissed(ctx)
		}
	}
}

func (s *Service) tellMissed(ctx context.Context) {
	all := s.missed.take()
	if all.Calls == 0 || s.Calls == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callBound)
	defer cancel()
	detail, err := json.Marshal(all)
	if err == nil {
		err = s.Calls.Append(ctx, holdfast.Entry{Kind: holdfast.Called, Code: audit.CodeGap, Outcome: holdfast.Transient, Detail: detail})
	}
	if err != nil {
		s.missed.add(all)
	}
}
