package holdfast

import (
	"context"
	"sync"
	"time"
)

// A message that a call waits for may be delivered by another process that has
// the same store (Shared). Its row says so, and nobody else: while others are
// there the row is looked at, soon at first, and then less and less often; each
// second also while nobody else seems to be there.
const (
	firstLook = 25 * time.Millisecond
	mostLook  = time.Second
)

// await is Waiter.Wait that also sees what other processes did.
func (s *Submitter) await(ctx context.Context, w *Waiter, atMost time.Duration) (AttemptInfo, bool) {
	shared, ok := s.Outbox.(Shared)
	if !ok {
		return w.Wait(ctx, atMost)
	}
	looking, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { s.look(looking, w, shared) })
	defer looks.Wait()
	defer stop()
	return w.Wait(ctx, atMost)
}

// look ends the wait for a message once its row says that it was tried.
func (s *Submitter) look(ctx context.Context, w *Waiter, shared Shared) {
	for wait := firstLook; ; wait = min(2*wait, mostLook) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if shared.Alone() && wait < mostLook {
			continue // another may have been here, or come
		}
		r, err := s.Outbox.Get(ctx, w.id)
		if err != nil || !r.State.Final() && r.Tries == 0 {
			continue // the row says nothing yet, or cannot be read now
		}
		w.elsewhere(&r)
		return
	}
}

// elsewhere tells one who waits that the message was tried by another process:
// of a delivery that it was made, not what it brought. An outcome that is being
// recorded here comes first.
func (w *Waiter) elsewhere(r *Record) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if _, waits := w.of.list[w.id][w]; !waits || w.held {
		return
	}
	if r.State == Delivered {
		w.outcome <- AttemptInfo{ID: w.id, Destination: w.destination, Outcome: Succeeded, State: Delivered, Retries: max(r.Tries-1, 0)}
	} else {
		close(w.outcome)
	}
	w.forget()
}
