package holdfast

import (
	"context"
	"errors"
	"time"
)

// A message that a call waits for may be delivered by another process that has
// the same store (Shared). Its row says so, and nobody else: while others are
// there the row is looked at, soon at first, and then less and less often; each
// second also while nobody else seems to be there.
const (
	firstLook = 25 * time.Millisecond
	mostLook  = time.Second
	lookBound = 5 * time.Second // of one look
)

// Standing is where a message stands, without all else.
type Standing struct {
	State State
	Tries int // of this cycle
	Cycle int
}

// tried says that a message has ended, or was tried, since it stood as before.
func (s Standing) tried(before *Standing) bool {
	return s.State.Final() || before != nil && (s.Tries != before.Tries || s.Cycle != before.Cycle)
}

// await is Waiter.Wait that also sees what other processes did. A look that is
// under way at the end of the wait is neither waited for nor cut off.
func (s *Submitter) await(ctx context.Context, w *Waiter, known bool, atMost time.Duration) (AttemptInfo, bool) {
	shared, ok := s.Outbox.(Shared)
	if !ok {
		return w.Wait(ctx, atMost)
	}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	if known {
		go w.look(looking, shared, nil, 0) // how often it was tried before, the first look tells
	} else {
		go w.look(looking, shared, &Standing{Cycle: 1}, firstLook)
	}
	return w.Wait(ctx, atMost)
}

// look ends the wait for a message once its row says that it was tried since
// it stood as before; nil: as at the first look.
func (w *Waiter) look(ctx context.Context, in Shared, before *Standing, first time.Duration) {
	for wait := first; ; wait = min(max(2*wait, firstLook), mostLook) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if before != nil && wait < mostLook && in.Alone() {
			continue // another may have been here, or come
		}
		now, err := standing(ctx, in, w.id)
		if err != nil {
			continue // it cannot be read now
		}
		if now.tried(before) && w.elsewhere(now) {
			return
		}
		if before == nil {
			before = &now
		}
	}
}

// standing is one look. The end of the wait does not cut it off: a store may lose
// a connection by that.
func standing(ctx context.Context, in Shared, id ID) (Standing, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookBound)
	defer cancel()
	return in.Standing(ctx, id)
}

// elsewhere tells one who waits that the message was tried by another process:
// of a delivery that it was made, not what it brought; else where the message
// stands. An outcome that is being recorded here comes first, with all that it
// brought: then it says false.
func (w *Waiter) elsewhere(now Standing) (told bool) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if _, waits := w.of.list[w.id][w]; !waits {
		return true
	}
	if _, here := w.of.recording[w.id]; here || w.held {
		return false
	}
	w.stands = now.State
	if now.State == Delivered {
		w.outcome <- AttemptInfo{ID: w.id, Destination: w.destination, Outcome: Succeeded, State: Delivered, Retries: max(now.Tries-1, 0)}
	} else {
		close(w.outcome)
	}
	w.forget()
	return true
}

// endedElsewhere is what a call is told of a message that has ended while it
// waited, and not by a delivery: a refusal as one, all else by its state. The
// message was accepted, whatever cannot be read of it now.
func (s *Submitter) endedElsewhere(ctx context.Context, sub Submission) (Submission, error) {
	err := s.endedBefore(ctx, Receipt{ID: sub.ID, State: sub.State})
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return sub, refused
	}
	return sub, nil
}
