package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Submitter takes messages as an Enqueuer does, and can wait for the outcome of the first
// attempt. A message is on disk before it is tried. So a crash in between loses nothing,
// and a repeat of the id does not call twice (SF-36). Its methods may be called
// concurrently.
type Submitter struct {
	Enqueuer Enqueuer
	Outbox   Outbox
	// Waiters are the dispatcher's (Dispatcher.Waiters). Nil: no call waits.
	Waiters *Waiters
	// Lane tells how a destination fares; use Dispatcher.Lane. Nil: unknown, and calls also
	// wait for messages that will not be tried now.
	Lane func(destination string) (s LaneStatus, known bool)
}

// Submission is what became of a submitted message.
type Submission struct {
	ID        ID
	State     State // as far as the call has waited
	Duplicate bool  // the id was known, with the same content: the call changed nothing
	// Attempt is the first outcome, if the call waited for it. The response is not kept: a
	// repeat does not get it.
	Attempt *AttemptInfo
}

// RefusedError says that the other side has refused a message for good. The message has
// ended and is kept for its retention. No decision is needed, but a person may retry it. A
// message that was refused while nobody waited is parked instead.
type RefusedError struct {
	ID   ID
	Code string // short and stable: "http_422"
	Text string // what the other side said, bounded and without secrets
}

func (e *RefusedError) Error() string { return fmt.Sprintf("message %s is refused: %s", e.ID, e.Text) }

// HTTPStatus returns the other side's HTTP status; 0 if it does not speak HTTP.
func (e *RefusedError) HTTPStatus() int { return HTTPStatus(e.Code) }

// EndedError says that a person ended the message of this id, or its TTL passed. The same
// content is not sent again. Errors.Is reports true for ErrState.
type EndedError struct {
	ID    ID
	State State // Discarded or Expired
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("message %s is %s, and not sent again; retry it, or send it under a new id", e.ID, e.State)
}

func (e *EndedError) Unwrap() error { return ErrState }

// Submit enqueues a message and waits for its first outcome, at most for the given time;
// zero: it does not wait. It reports a delivery, or a refusal for good as a RefusedError.
// After any other outcome the message is tried again later (SF-03). Submit does not wait
// for an attempt that will not be made now: the destination is down or held, another
// process owns the store, or the message went back. A repeat of a discarded or expired
// message is an EndedError. The other errors are those of Enqueue, and then nothing was
// accepted.
func (s *Submitter) Submit(ctx context.Context, m Message, wait time.Duration) (Submission, error) {
	var waiter *Waiter
	if wait > m.Delay && s.Waiters != nil { // else it is not tried within wait
		if m.ID == "" {
			m.ID = NewID()
		}
		id, err := ParseID(string(m.ID))
		if err != nil {
			return Submission{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		m.ID = id
		waiter = s.Waiters.Expect(id, m.Destination)
		defer waiter.Stop()
	}
	shut := s.isShut(m.Destination) // read before Enqueue: the waiter is told of later changes
	receipts, err := s.Enqueuer.Enqueue(ctx, m)
	if err != nil {
		return Submission{}, err
	}
	if len(receipts) != 1 {
		return Submission{}, fmt.Errorf("enqueue 1 message: got %d receipts", len(receipts))
	}
	r := receipts[0]
	sub := Submission{ID: r.ID, State: r.State, Duplicate: r.Duplicate}
	switch {
	case r.State == Discarded, r.State == Expired, r.State == Parked && waiter != nil: // the id was known
		return sub, s.endedBefore(ctx, r)
	case waiter == nil:
		return sub, nil
	case r.State.Final(), shut:
		return sub, nil
	}
	a, ok := s.await(ctx, waiter, r.Duplicate, wait)
	if !ok && waiter.stands.Final() {
		sub.State = waiter.stands
		return s.endedElsewhere(ctx, sub)
	}
	if !ok {
		return sub, nil
	}
	sub.State, sub.Attempt = a.State, &a
	if a.State.Final() && a.Outcome == Permanent { // a repeat may get the outcome of the message's last retry instead
		return sub, &RefusedError{ID: a.ID, Code: a.Failure.Code, Text: a.Failure.Error()}
	}
	return sub, nil
}

// endedBefore returns the error for a repeat of an ended message: it was refused for good,
// or ended without a delivery. It is nil if somebody has just decided about the message,
// or if its retries are used up.
func (s *Submitter) endedBefore(ctx context.Context, was Receipt) error {
	r, err := s.Outbox.Get(ctx, was.ID)
	switch {
	case errors.Is(err, ErrNotFound): // purged this moment
		return nil
	case err != nil:
		return fmt.Errorf("read message %s: %w", was.ID, err)
	case r.State != was.State, r.State == Parked && r.Reason == ReasonExhausted:
		return nil
	case r.State != Parked && r.Reason != ReasonRejected:
		return &EndedError{ID: was.ID, State: r.State}
	}
	refused := &RefusedError{ID: was.ID, Text: r.LastError}
	for _, e := range r.History {
		if e.Kind == Attempted && e.Code != "" {
			refused.Code = e.Code
		}
	}
	return refused
}

// isShut reports whether the destination tries nothing now.
func (s *Submitter) isShut(destination string) bool {
	if s.Lane == nil {
		return false
	}
	lane, known := s.Lane(destination)
	return known && !lane.tries()
}
