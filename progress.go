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

// The causes, in the order in which they are checked.
const (
	CauseNoRoute  Cause = "no_route"  // no process delivers there; the messages stay pending
	CauseNotOwner Cause = "not_owner" // another process owns the store, and the messages wait for it
	CausePaused   Cause = "paused"    // a person wants the destination left alone
	CauseHeld     Cause = "held"      // the destination has a fault of its own
	CauseDown     Cause = "down"      // it does not answer as it should
	CauseBusy     Cause = "busy"      // it cannot begin anything now
	CauseFailing  Cause = "failing"   // attempts are made, and none gets anywhere
	CauseStuck    Cause = "stuck"     // no attempts are made, and nothing says why: a restart may help
)

// Standstill tells of a destination whose due messages make no progress.
type Standstill struct {
	Destination string
	Cause       Cause
	For         time.Duration // since the oldest of them was due or first tried, without any progress since
	Problem     string        // the last failure, if any
}

// StandstillAfter is how long due messages may make no progress before it is reported. It
// is the same for one message and for a million.
const StandstillAfter = time.Minute

// How often Progress looks, and how often it repeats a log line.
const (
	lookEvery = 10 * time.Second
	warnEvery = time.Minute
)

// Progress watches whether due messages of a store move. It gives one answer to all who
// ask: Status, health, metrics. A Dispatcher has its own Progress unless it is given one.
// Dispatchers of one process that share a store are given the same one, and its maker runs
// it. Its cost does not depend on how many messages wait. Its methods may be called
// concurrently.
type Progress struct {
	Store Gauges
	Lanes func() []LaneStatus // of all dispatchers of the process
	// Known reports whether somebody delivers to a destination that has no lane here:
	// another node, or a lane that is only stopped. Nil: nobody does.
	Known func(destination string) bool
	// Elsewhere reports whether another process delivers to a destination of which this one
	// has no share. Nil: nobody does.
	Elsewhere func(destination string) bool
	Logger    *slog.Logger // nil: none

	seen   atomic.Pointer[sighting]
	warned map[Cause]time.Time // only Run uses it
}

// sighting is the result of one look.
type sighting struct {
	standstills []Standstill
	oldest      map[string]time.Duration
	err         error
}

// Run looks every few seconds until ctx ends, and logs standstills once a minute. It
// returns nil.
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

// Standstills lists by name the destinations whose due messages made no progress at the
// last look. err says that the store could not be asked.
func (p *Progress) Standstills() (list []Standstill, err error) {
	s := p.seen.Load()
	if s == nil {
		return nil, nil
	}
	return s.standstills, s.err
}

// standstill returns that of one destination; nil: there was none at the last look.
func (p *Progress) standstill(destination string) *Standstill {
	all, _ := p.Standstills()
	i, found := slices.BinarySearchFunc(all, destination, func(s Standstill, name string) int { return strings.Compare(s.Destination, name) })
	if !found {
		return nil
	}
	return &all[i]
}

// Oldest returns how long the oldest due message of each destination had waited at the last
// look: since it was due, or since it was first tried if nothing has got anywhere since.
// Destinations without due messages have zero.
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
			continue // notices that no dispatcher has callbacks for
		}
		s.oldest[name] = age
		if p.Known == nil || !p.Known(name) {
			s.standstills = append(s.standstills, Standstill{Destination: name, Cause: CauseNoRoute, For: age})
		}
	}
	slices.SortFunc(s.standstills, func(a, b Standstill) int { return strings.Compare(a.Destination, b.Destination) })
	return s
}

// cause returns why a lane whose messages have waited for long does not move. Empty: it
// moves, or other processes move it.
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

// stands reports whether a lane that should move does not: nothing has ended for long, and
// no request is within its time-out.
func (s *LaneStatus) stands() bool {
	const slack = 10 * time.Second
	works := s.InFlight > s.Hanging && s.Oldest < s.Timeout+slack
	return !works && s.Idle > StandstillAfter
}

// warn logs standstills that no other line tells, once a minute for each cause. A lane
// that goes down or is held is logged at that moment.
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
