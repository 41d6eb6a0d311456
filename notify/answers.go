package notify

import (
	"context"
	"sync/atomic"
)

// Answers counts the attempts that must not be cut off just now: what they have
// sent may be the other side's already, and its answer is under way. The zero
// value works; its methods may be called concurrently.
type Answers struct{ awaited atomic.Int64 }

// Awaited says whether there are any: who ends the process waits for them, for
// LastAnswer at most.
func (a *Answers) Awaited() bool { return a.awaited.Load() > 0 }

type answersKey struct{}

// With makes ctx one of which Await tells a.
func (a *Answers) With(ctx context.Context) context.Context {
	if a == nil {
		return ctx
	}
	return context.WithValue(ctx, answersKey{}, a)
}

// Await is for an adapter: from now on until it calls the function that it gets,
// which it does once, an end of the process would send twice what it has sent.
// The context is that of Send.
func Await(ctx context.Context) (answered func()) {
	a, ok := ctx.Value(answersKey{}).(*Answers)
	if !ok {
		return func() {}
	}
	a.awaited.Add(1)
	return func() { a.awaited.Add(-1) }
}
