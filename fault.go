package holdfast

import (
	"context"
	"log/slog"
	"sync"
)

// faultKeeper writes lane faults beside the loop: a busy store must not hold up
// deliveries. Of several changes of one lane it writes the last. After a crash, the next
// attempt finds a lost fault again.
type faultKeeper struct {
	lanes Lanes
	log   *slog.Logger

	mu      sync.Mutex
	changes map[string]string // lane → problem; empty: the fault is over
	ended   chan struct{}     // of the writing goroutine; nil: it does not run
}

// keep starts writing the problem of a lane.
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

// wait returns when everything is written.
func (k *faultKeeper) wait() {
	k.mu.Lock()
	ended := k.ended
	k.mu.Unlock()
	if ended != nil {
		<-ended
	}
}
