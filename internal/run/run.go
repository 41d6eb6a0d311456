// Package run keeps the parts of a node alive together, and ends them together.
//
// It promises that no part is left behind. [All] returns when every part that it started has
// returned, and its error holds the errors of all of them. Parts are stopped in reverse order, one
// after the other. So a part can rely on the parts listed before it until its own Run has returned:
//
//	start   store ──► inbox ──► dispatcher ──► server      (at once, in this order)
//	stop    store ◄── inbox ◄── dispatcher ◄── server      (each waits for the one before)
//
// It does not promise that a part is ready when the next one starts (open and listen before you
// build the list), nor that stopping ends in bounded time. All waits as long as a part takes. The
// process that calls it sets the limit, by a timer or a second signal.
//
// The lists of parts in package node use it, and so does any part that consists of parts.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrEarly is the error of a part that returned nil before it was stopped. A part runs until it is
// stopped: if it ended silently, the node would look alive but no longer do its work.
var ErrEarly = errors.New("ended before it was stopped")

// Part is a piece of a node that works until it is stopped.
type Part struct {
	// Name identifies the part in an error.
	Name string
	// Run blocks until ctx ends, then finishes its work in hand and returns nil. An error ends the
	// whole group. It is called once, on its own goroutine. The context has the values of the
	// group's context, but neither its end nor its deadline: it ends when it is this part's turn to
	// stop.
	Run func(ctx context.Context) error
}

// All runs the parts until ctx ends or one of them fails. Then it stops them, last one first, each
// before the one that it was built on. It returns nil if ctx ended and every part returned nil.
// Otherwise it returns the errors of all parts, joined in the order in which the parts ended, each
// with the name of its part. It does not catch a panic of a part.
func All(ctx context.Context, parts ...Part) error {
	type live struct {
		stop context.CancelFunc
		done chan struct{}
	}
	// There is room for every part: a part that fails while others are being stopped must not wait
	// for a reader.
	ended := make(chan error, len(parts))
	running := make([]live, 0, len(parts))
	for _, p := range parts {
		// A part outlives ctx until its turn to stop comes.
		partCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
		l := live{stop, make(chan struct{})}
		go func() {
			defer close(l.done)
			err := p.Run(partCtx)
			if err == nil && partCtx.Err() == nil {
				err = ErrEarly
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", p.Name, err)
			}
			ended <- err
		}()
		running = append(running, l)
	}
	var all []error
	got := 0
	select {
	case <-ctx.Done():
	case err := <-ended:
		all, got = append(all, err), 1
	}
	for _, l := range slices.Backward(running) {
		l.stop()
		<-l.done
	}
	for ; got < len(parts); got++ {
		all = append(all, <-ended)
	}
	return errors.Join(all...)
}
