package admin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// MaxWait is the longest that a request may wait for the first outcome of the
// message that it brought.
const MaxWait = time.Minute

// Waiters are the requests that wait for the first outcome of their message.
// The zero value has none. It is part of the dispatcher's Observer.
type Waiters struct {
	mu     sync.Mutex
	list   map[holdfast.ID]map[chan holdfast.AttemptInfo]struct{}
	closed bool
}

// ObserveAttempt tells those who wait for this message, once.
func (w *Waiters) ObserveAttempt(a holdfast.AttemptInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.list[a.ID] {
		c <- a // it has room for the one that it gets
	}
	delete(w.list, a.ID)
}

// Release ends all waits, also those that come later: a node that stops keeps
// nobody waiting.
func (w *Waiters) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, waiting := range w.list {
		for c := range waiting {
			close(c)
		}
	}
	w.list, w.closed = nil, true
}

// expect must be called before the message can be tried.
func (w *Waiters) expect(id holdfast.ID) (outcome <-chan holdfast.AttemptInfo, stop func()) {
	c := make(chan holdfast.AttemptInfo, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(c)
		return c, func() {}
	}
	if w.list == nil {
		w.list = map[holdfast.ID]map[chan holdfast.AttemptInfo]struct{}{}
	}
	if w.list[id] == nil {
		w.list[id] = map[chan holdfast.AttemptInfo]struct{}{}
	}
	w.list[id][c] = struct{}{}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.list[id], c)
		if len(w.list[id]) == 0 {
			delete(w.list, id)
		}
	}
}

// waitOf is for how long a request wants to wait.
func (s *Server) waitOf(req *NewMessage) (time.Duration, []Fault) {
	d, _ := s.destination(req.Destination)
	if req.Wait == "" {
		return d.Wait, nil
	}
	wait, problem := parseDuration(req.Wait)
	if problem == "" && wait > MaxWait {
		problem = "is longer than " + formatDuration(MaxWait) + "; ask GET /v1/messages/{id} for what takes longer"
	}
	if problem != "" {
		return 0, []Fault{{"wait", clip(req.Wait), problem}}
	}
	return wait, nil
}

// await answers with the first outcome of a message, or, where that takes too
// long, with where it stands. A destination that is down is not waited for:
// its messages wait for it.
func (s *Server) await(ctx context.Context, out *sendOutput, id holdfast.ID, outcome <-chan holdfast.AttemptInfo, wait time.Duration, destination string) (*sendOutput, error) {
	if out.Body.State == holdfast.Parked.String() { // the id was known
		return s.refusedBefore(ctx, id, out)
	}
	if !out.Body.Buffered || s.isDown(destination) {
		return out, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case a, ok := <-outcome:
		if ok {
			return answerOf(out, &a)
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return out, nil
}

func (s *Server) isDown(destination string) bool {
	if s.Lanes == nil {
		return false
	}
	for _, l := range s.Lanes() {
		if l.Destination == destination {
			return !l.Up
		}
	}
	return false
}

func answerOf(out *sendOutput, a *holdfast.AttemptInfo) (*sendOutput, error) {
	out.Body.State, out.Body.Buffered, out.Body.Outcome = a.State.String(), !a.State.Final(), a.Outcome.String()
	if a.Failure != nil {
		out.Body.LastError = a.Failure.Error()
	}
	switch a.State {
	case holdfast.Delivered:
		out.Status = 200
		out.Body.Response, out.Body.ResponseBase64 = payloadOf(a.Response)
	case holdfast.Parked:
		if a.Outcome != holdfast.Permanent { // a repeat has met the last of its retries
			return out, nil
		}
		return nil, refusedBy(out.Body.ID, a.Failure.Code, out.Body.LastError)
	case holdfast.Pending, holdfast.Claimed, holdfast.Expired, holdfast.Discarded:
	}
	return out, nil
}

// refusedBefore is the answer to a repeat of what was refused for good.
func (s *Server) refusedBefore(ctx context.Context, id holdfast.ID, out *sendOutput) (*sendOutput, error) {
	r, err := s.Outbox.Get(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && (r.State != holdfast.Parked || r.Reason == holdfast.ReasonExhausted) {
		return out, nil // somebody has decided about it this moment, or its retries are used up
	}
	if err != nil {
		return nil, s.refuse(ctx, "read the message", err)
	}
	code := ""
	for _, e := range r.History {
		if e.Kind == holdfast.Attempted && e.Code != "" {
			code = e.Code
		}
	}
	return nil, refusedBy(string(id), code, r.LastError)
}

func refusedBy(id, code, text string) *Problem {
	p := kindRefused.problem(fmt.Sprintf("message %s is parked: %s", id, text))
	p.Message, p.Code = id, code
	return p
}
