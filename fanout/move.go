package fanout

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Mover moves retries. Both stores are one.
type Mover interface {
	// MoveRetries plans the retries of a destination anew that are not due yet, and returns how many it has
	// changed. plan is given how often a message was tried in its cycle and how long it waits since its last
	// attempt, and returns how long it is to wait since then. What is in hand or due, and what a person has
	// rescheduled, stays. Each page is a transaction of its own. plan must have no effect: it may be asked more than
	// once.
	MoveRetries(ctx context.Context, destination string, plan func(tries int, wait time.Duration) time.Duration) (moved int, err error)
}

// Planner moves what waits when an operator has set another usual schedule and asked for that. It goes on where it was
// after a restart. A message is moved to an instant that its last attempt and the schedule give, so it makes no
// difference if two nodes do it, or one does it twice.
type Planner struct {
	Book     *Book
	Mover    Mover
	Schedule Schedule     // of this node's configuration
	Logger   *slog.Logger // nil: nothing is logged

	done int64 // the version for which nothing is left to do
}

// subscriptionsAtOnce is how many subscriptions are moved before that is recorded.
const subscriptionsAtOnce = 100

// Run moves until ctx ends. It returns an error when the store has stopped.
func (p *Planner) Run(ctx context.Context) error {
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	tick := time.NewTicker(freshFor)
	defer tick.Stop()
	for {
		more, err := p.step(ctx)
		switch {
		case errors.Is(err, holdfast.ErrClosed):
			return err
		case err != nil && ctx.Err() == nil:
			p.Logger.ErrorContext(ctx, "retries not moved to the new schedule", slog.Any("error", err))
		case more && ctx.Err() == nil:
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// step moves the messages of some subscriptions, and reports whether there are more that need not wait.
func (p *Planner) step(ctx context.Context) (more bool, err error) {
	known, err := p.Book.Usual(ctx)
	if err != nil || known.Version == p.done {
		return false, err
	}
	u, err := p.Book.store.Usual(ctx)
	if err != nil {
		return false, err
	}
	if u.Rounds == 0 {
		p.done = u.Version
		return false, nil
	}
	if u.Rounds < moveRounds && u.Age.Abs() < moveAgain { // far below zero the clock was put right since
		return false, nil
	}
	list, err := p.Book.store.SubscriptionsAt(ctx, math.MaxInt64, u.Moved, subscriptionsAtOnce)
	if err != nil {
		return false, err
	}
	plan := func(tries int, wait time.Duration) time.Duration { return u.plan(p.Schedule, tries, wait) }
	moved, rounds, last := 0, u.Rounds, ""
	for i := range list {
		if last = list[i].ID; list[i].Schedule != nil || list[i].Fault != "" {
			continue
		}
		n, err := p.Mover.MoveRetries(ctx, Lane(last), plan)
		if moved += n; err != nil {
			return false, err
		}
	}
	if moved > 0 {
		p.Logger.InfoContext(ctx, "retries moved to the new schedule", slog.Int("count", moved))
	}
	if len(list) < subscriptionsAtOnce {
		rounds, last = u.Rounds-1, ""
	}
	if err := p.Book.store.MoveUsual(ctx, &u, rounds, last); !errors.Is(err, holdfast.ErrState) {
		return true, err
	}
	return true, nil // another node was faster, or the schedule was changed again
}
