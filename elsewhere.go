package holdfast

import (
	"context"
	"errors"
	"time"
)

// Another process that has the same store (Shared) may deliver a message that a call
// waits for. Only the row tells so. While others have the store, the call reads the row,
// soon at first and then less and less often. Once a second it also reads the row while
// nobody else seems to be there.
const (
	firstLook = 25 * time.Millisecond
	mostLook  = time.Second
	lookBound = 5 * time.Second // limit of one look
)

// Standing is the place of a message in its lifecycle and nothing else.
type Standing struct {
	State State
	Tries int // of this cycle
	Cycle int
}

// tried reports whether a message has ended or was tried since it stood as before.
func (s Standing) tried(before *Standing) bool {
	return s.State.Final() || before != nil && (s.Tries != before.Tries || s.Cycle != before.Cycle)
}

// await is Waiter.Wait that also sees what other processes did. At the end of the wait
// it neither waits for a look under way nor cuts it off.
func (s *Submitter) await(ctx context.Context, w *Waiter, known bool, atMost time.Duration) (AttemptInfo, bool) {
	shared, ok := s.Outbox.(Shared)
	if !ok {
		return w.Wait(ctx, atMost)
	}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	if known {
		go w.look(looking, shared, nil, 0) // the first look tells how often it was tried before
	} else {
		go w.look(looking, shared, &Standing{Cycle: 1}, firstLook)
	}
	return w.Wait(ctx, atMost)
}

// look ends the wait for a message once its row shows a try since it stood as before.
// Nil before: since the first look.
func (w *Waiter) look(ctx context.Context, in Shared, before *Standing, first time.Duration) {
	for wait := first; ; wait = min(max(2*wait, firstLook), mostLook) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if before != nil && wait < mostLook && in.Alone() {
			continue // another process may have been here, or may come
		}
		now, err := standing(ctx, in, w.id)
		if err != nil {
			continue // the row cannot be read now
		}
		if now.tried(before) && w.elsewhere(now) {
			return
		}
		if before == nil {
			before = &now
		}
	}
}

// standing is one look. The end of the wait does not cut it off: that could cost the
// store a connection.
func standing(ctx context.Context, in Shared, id ID) (Standing, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookBound)
	defer cancel()
	return in.Standing(ctx, id)
}

// elsewhere tells a waiter that another process tried the message. For a delivery it tells
// that it was made, without the response; otherwise it tells the state of the message. If
// an outcome is being recorded here, elsewhere returns false: that outcome comes first,
// with all that it brought.
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

// endedElsewhere returns what a call is told about a message that ended while the call
// waited, other than by a delivery. A refusal is told as one, every other end by its state.
// If the message cannot be read now, the call is told that it was accepted.
func (s *Submitter) endedElsewhere(ctx context.Context, sub Submission) (Submission, error) {
	err := s.endedBefore(ctx, Receipt{ID: sub.ID, State: sub.State})
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return sub, refused
	}
	return sub, nil
}
