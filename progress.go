package holdfast

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast/internal/brief"
)

// Cause says why due messages of a destination make no progress.
type Cause string

// The causes, in the order in which they are looked for.
const (
	CauseNoRoute  Cause = "no_route"  // nobody delivers there; the messages stay pending
	CauseNotOwner Cause = "not_owner" // another process has the store, and they wait for it
	CausePaused   Cause = "paused"    // a person wants the destination left alone
	CauseHeld     Cause = "held"      // the destination has a fault of its own
	CauseDown     Cause = "down"      // it does not answer as it should
	CauseBusy     Cause = "busy"      // it cannot even begin
	CauseFailing  Cause = "failing"   // attempts are made, and none gets anywhere
	CauseStuck    Cause = "stuck"     // none is made, and nothing tells why: a restart may help
)

// Standstill tells of a destination whose due messages make no progress.
type Standstill struct {
	Destination string
	Cause       Cause
	For         time.Duration // since the oldest of them was due, or tried first, and nothing got anywhere
	Problem     string        // the last failure, if any
}

// StandstillAfter is how long due messages may make no progress before that is
// told: one message as well as a million.
const StandstillAfter = time.Minute

// How often is looked, and how often the same is logged.
const (
	lookEvery = 10 * time.Second
	warnEvery = time.Minute
)

// Progress watches whether due messages of a store move, by one rule for all
// who ask: Status, health, metrics. A Dispatcher has one of its own unless it is
// given one; where several dispatchers of a process share a store, they are
// given the same, and whoever made it runs it. What it costs does not depend on
// how many messages wait. Its methods may be called concurrently.
type Progress struct {
	Store Gauges
	Lanes func() []LaneStatus // of all dispatchers of the process
	// Known says of a destination without a lane here that somebody delivers to
	// it all the same: another node, or a lane that is only stopped. Nil: nobody.
	Known func(destination string) bool
	// Elsewhere says of a destination of which this process has no share that
	// another one delivers to it. Nil: nobody does.
	Elsewhere func(destination string) bool
	Logger    *slog.Logger // nil: none

	seen   atomic.Pointer[sighting]
	warned map[Cause]time.Time // Run's
}

// sighting is what one look has found.
type sighting struct {
	standstills []Standstill
	oldest      map[string]time.Duration
	err         error
}

// Run looks every few seconds until ctx ends, and logs once a minute what makes
// no progress. It returns nil.
func (p *Progress) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if s := p.look(ctx); ctx.Err() == nil {
			p.seen.Store(s)
			p.warn(ctx, s)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Standstills are the destinations whose due messages made no progress at the
// last look, by name. err says that the store did not tell.
func (p *Progress) Standstills() (list []Standstill, err error) {
	s := p.seen.Load()
	if s == nil {
		return nil, nil
	}
	return s.standstills, s.err
}

// standstill is that of one destination; nil: there was none at the last look.
func (p *Progress) standstill(destination string) *Standstill {
	all, _ := p.Standstills()
	i, found := slices.BinarySearchFunc(all, destination, func(s Standstill, name string) int { return strings.Compare(s.Destination, name) })
	if !found {
		return nil
	}
	return &all[i]
}

// Oldest is for how long the oldest due message of each destination has waited
// as of the last look: since it was due, or since it was tried first if nothing
// has got anywhere since. Destinations without due messages have zero.
func (p *Progress) Oldest() map[string]time.Duration {
	s := p.seen.Load()
	if s == nil {
		return nil
	}
	return s.oldest
}

func (p *Progress) look(ctx context.Context) *sighting {
	overdue, err := p.Store.Overdue(ctx)
	if err != nil {
		return &sighting{err: err}
	}
	s := &sighting{oldest: map[string]time.Duration{}}
	counts := p.Store.Counts().Lanes
	for _, l := range p.Lanes() {
		age := overdue[l.Destination]
		if counts[l.Destination].Pending > 0 || l.InFlight > 0 {
			age = max(age, l.Failing)
		}
		s.oldest[l.Destination] = age
		delete(overdue, l.Destination)
		if age < StandstillAfter {
			continue
		}
		if cause := p.cause(&l); cause != "" {
			s.standstills = append(s.standstills, Standstill{l.Destination, cause, age, l.Problem})
		}
	}
	for name, age := range overdue {
		if name == EndedDestination {
			continue // notices that nobody asked for any more
		}
		s.oldest[name] = age
		if p.Known == nil || !p.Known(name) {
			s.standstills = append(s.standstills, Standstill{Destination: name, Cause: CauseNoRoute, For: age})
		}
	}
	slices.SortFunc(s.standstills, func(a, b Standstill) int { return strings.Compare(a.Destination, b.Destination) })
	return s
}

// cause is why a lane does not move, with messages that have waited for long;
// empty: it moves, or others move it.
func (p *Progress) cause(l *LaneStatus) Cause {
	switch {
	case l.Owner != "":
		return CauseNotOwner
	case l.Decision.Paused:
		return CausePaused
	case l.Limit == 0 && p.Elsewhere != nil && p.Elsewhere(l.Destination):
		return ""
	case l.Held:
		return CauseHeld
	case !l.Up:
		return CauseDown
	case l.Failing >= StandstillAfter:
		return CauseFailing
	case l.Busy > 0:
		return CauseBusy
	case l.stands():
		return CauseStuck
	}
	return ""
}

// stands says whether a lane that should move does not: nothing has ended for
// long, and no request is within its time-out.
func (s *LaneStatus) stands() bool {
	const slack = 10 * time.Second
	works := s.InFlight > s.Hanging && s.Oldest < s.Timeout+slack
	return !works && s.Idle > StandstillAfter
}

// warn logs what nothing else tells, once a minute for each cause. Lanes that go
// down or are held are logged when they do.
func (p *Progress) warn(ctx context.Context, s *sighting) {
	if p.Logger == nil {
		return
	}
	found := map[Cause][]Standstill{}
	for _, one := range s.standstills {
		if one.Cause != CauseDown && one.Cause != CauseHeld && one.Cause != CausePaused {
			found[one.Cause] = append(found[one.Cause], one)
		}
	}
	if p.warned == nil {
		p.warned = map[Cause]time.Time{}
	}
	for _, cause := range slices.Sorted(maps.Keys(found)) {
		if at, told := p.warned[cause]; told && time.Since(at) < warnEvery {
			continue
		}
		p.warned[cause] = time.Now()
		level := slog.LevelWarn
		if cause == CauseStuck {
			level = slog.LevelError
		}
		p.Logger.LogAttrs(ctx, level, "due messages make no progress", slog.String("cause", string(cause)),
			slog.String("destinations", namesOf(found[cause])), slog.Int("count", len(found[cause])))
	}
}

func namesOf(list []Standstill) string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Destination
	}
	return brief.List(names)
}
