package notify

import (
	"context"
	"sync/atomic"
)

// Answers counts the attempts that must not be cut off now: the other side may have accepted what
// they sent, and its answer is on the way. The zero value is ready to use. Its methods may be
// called concurrently.
type Answers struct{ awaited atomic.Int64 }

// Awaited reports whether there are any. Before it ends the process, the caller waits for them, for
// at most LastAnswer.
func (a *Answers) Awaited() bool { return a.awaited.Load() > 0 }

type answersKey struct{}

// With returns a context with which Await counts in a.
func (a *Answers) With(ctx context.Context) context.Context {
	if a == nil {
		return ctx
	}
	return context.WithValue(ctx, answersKey{}, a)
}

// Await is for an adapter. It says that ending the process now would cause a second delivery. The
// adapter calls answered once when that is over. The context is that of Send.
func Await(ctx context.Context) (answered func()) {
	a, ok := ctx.Value(answersKey{}).(*Answers)
	if !ok {
		return func() {}
	}
	a.awaited.Add(1)
	return func() { a.awaited.Add(-1) }
}
