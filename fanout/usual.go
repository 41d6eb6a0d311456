package fanout

import (
	"context"
	"slices"
	"time"
)

// Usual is the schedule of all subscriptions without one of their own, as an operator has set it (WH-04). The
// zero value means that nobody has: then each node's configuration holds.
type Usual struct {
	Schedule Schedule
	GivenUp  bool  // there is no Schedule any more: each node's configuration holds again
	Version  int64 // of the store; a replacement must name it; zero: nobody has set one
	Actor    string
	Changed  time.Time
	// Former are schedules by which waiting messages may be planned, the newest first. What waits longer than
	// each of them says was put off by its subscriber.
	Former []Schedule

	Waiting bool   // what waited has moved, or moves
	Rounds  int    // over all subscriptions that are left to move what waits; zero: it waits as it was planned
	Moved   string // the last subscription of this round whose messages were moved
	Age     time.Duration
}

// UsualStore keeps the usual schedule. It shares the version of topics and subscriptions.
type UsualStore interface {
	// Usual returns it.
	Usual(ctx context.Context) (Usual, error)
	// PutUsual replaces it and returns its version. ErrState: somebody else was faster. A Rounds above zero
	// asks for what waits to be moved.
	PutUsual(ctx context.Context, u Usual, actor string) (version int64, err error)
	// MoveUsual records how far what waits has been moved: from what was read to rounds and moved. ErrState: another
	// node was faster, or the schedule has another version.
	MoveUsual(ctx context.Context, was *Usual, rounds int, moved string) error
}

const (
	// moveRounds is how often what waits is moved. An attempt that is in hand when the schedule changes ends by
	// the former one, on this node and others; the second round, when all such have ended, moves what they have left.
	moveRounds = 2
	// moveAgain is when the second round begins, after the change.
	moveAgain = maxTimeout + time.Minute
	// mostFormer bounds how many former schedules are remembered.
	mostFormer = 16
)

// Set reports whether an operator has set a schedule that counts.
func (u *Usual) Set() bool { return u.Version != 0 && !u.GivenUp }

// Or returns the schedule that counts at a node that is configured so.
func (u *Usual) Or(configured Schedule) Schedule {
	if u.Set() {
		return u.Schedule
	}
	return configured
}

// Replaced returns what takes the place of u. before is the schedule that has counted so far. waiting asks for what
// waits to be moved, too.
func (u *Usual) Replaced(by, before Schedule, waiting bool) Usual {
	next := Usual{Schedule: by, Version: u.Version, Former: []Schedule{before}}
	for _, f := range u.Former {
		if len(next.Former) < mostFormer && !slices.Contains(next.Former, f) {
			next.Former = append(next.Former, f)
		}
	}
	if waiting {
		next.Rounds, next.Waiting = moveRounds, true
	}
	return next
}

// plan returns how long a message waits by the usual schedule that has waited for another. It is the same however
// often it is asked. What a subscriber has put off comes no sooner than that.
func (u *Usual) plan(configured Schedule, tries int, wait time.Duration) time.Duration {
	own := u.Or(configured).Policy().Wait(tries - 1)
	if near(wait, own) {
		return wait
	}
	planned := slices.ContainsFunc(u.Former, func(s Schedule) bool { return near(wait, s.Policy().Wait(tries-1)) })
	if !planned {
		return max(wait, own)
	}
	return own
}

// near allows for what a store rounds.
func near(a, b time.Duration) bool { return (a - b).Abs() < time.Millisecond }

// UsualOr returns the usual schedule as the book has it, or that of the node's configuration.
func (b *Book) UsualOr(configured Schedule) Schedule {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.usual.Or(configured)
}

// Usual returns the usual schedule, at most about a second old. A zero Version: nobody has set one.
func (b *Book) Usual(ctx context.Context) (Usual, error) {
	err := b.refresh(ctx, freshFor)
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.usual, err
}

// takeUsual takes over the usual schedule. All routes that follow it change. The caller holds the lock.
func (b *Book) takeUsual(u Usual) {
	if u.Version == b.usual.Version {
		return
	}
	b.usual = u
	for id, s := range b.all {
		if s.Schedule == nil {
			b.changed[id] = struct{}{}
		}
	}
}

func (e edited) PutUsual(ctx context.Context, u Usual, actor string) (int64, error) {
	defer e.book.outdated()
	return e.Store.PutUsual(ctx, u, actor)
}
