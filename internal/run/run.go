// Package run keeps the parts of a node alive together, and ends them together.
//
// What is promised: no part is left behind. [All] returns when every part that it
// started has returned, and its error holds what each of them had to say. Parts are
// stopped in the reverse of the order in which they are listed, one after the other,
// so that a part can rely on the parts listed before it until its own Run has returned:
//
//	start   store ──► inbox ──► dispatcher ──► server      (at once, in this order)
//	stop    store ◄── inbox ◄── dispatcher ◄── server      (each waits for the one before)
//
// What is not promised: that a part is ready when the next one starts (open and listen
// before you build the list), and that stopping ends in bounded time. All waits for as
// long as a part takes; the process that calls it sets the limit, by a timer or a second
// signal.
//
// The lists of parts in package node call it, and any part that is itself made of parts.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrEarly is the error of a part that returned nil before anybody stopped it. A part
// runs until it is stopped: one that is gone without a word would leave a node that looks
// alive and no longer does its work.
var ErrEarly = errors.New("ended before it was stopped")

// Part is a piece of a node that works until it is stopped.
type Part struct {
	// Name says in an error which part it was.
	Name string
	// Run blocks until ctx ends, then finishes what it has in hand and returns nil. An
	// error ends the whole group. It is called once, on a goroutine of its own. The context
	// has the values of the group's context, yet neither its end nor its deadline: it ends
	// when it is this part's turn to stop.
	Run func(ctx context.Context) error
}

// All runs the parts until ctx ends or one of them fails, then stops them, the
// last one first, each before the one it was built on. It returns nil when ctx ended and
// every part came to a clean end; otherwise the errors of all parts, joined, each with the
// name of its part, the first to end first. A panic of a part is not caught.
func All(ctx context.Context, parts ...Part) error {
	type live struct {
		stop context.CancelFunc
		done chan struct{}
	}
	// There is room for every part: one that fails while others are being stopped must not
	// wait for a reader.
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
