package holdfast

import (
	"context"
	"log/slog"
	"sync"
)

// faultKeeper writes lane faults down beside the loop: a store that is busy
// must not hold up deliveries. Of several changes of a lane the last one is
// written. What is lost by a crash is found again by the next attempt.
type faultKeeper struct {
	lanes Lanes
	log   *slog.Logger

	mu      sync.Mutex
	changes map[string]string // lane → problem; empty: none any more
	ended   chan struct{}     // of the writing goroutine; nil: there is none
}

// keep has the problem of a lane written down.
func (k *faultKeeper) keep(lane, problem string) {
	if k.lanes == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changes == nil {
		k.changes = map[string]string{}
	}
	k.changes[lane] = problem
	if k.ended == nil {
		k.ended = make(chan struct{})
		go k.write(k.ended)
	}
}

func (k *faultKeeper) write(ended chan struct{}) {
	defer close(ended)
	for {
		k.mu.Lock()
		changes := k.changes
		k.changes = nil
		if len(changes) == 0 {
			k.ended = nil
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		for lane, problem := range changes {
			if err := k.lanes.SetLaneFault(context.Background(), lane, problem); err != nil {
				k.log.Error("lane fault not kept", slog.String("destination", lane), slog.Any("error", err))
			}
		}
	}
}

// wait returns when all is written.
func (k *faultKeeper) wait() {
	k.mu.Lock()
	ended := k.ended
	k.mu.Unlock()
	if ended != nil {
		<-ended
	}
}
