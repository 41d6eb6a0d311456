package holdfast

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// decisionsEvery is how often a dispatcher reads people's decisions about its
// destinations. They may come from here or from another node of the same store.
const decisionsEvery = 5 * time.Second

// decisions holds people's decisions about destinations. They are read beside the loop:
// a busy store must not hold up deliveries.
type decisions struct {
	lanes Lanes
	log   *slog.Logger
	ring  chan<- struct{} // the loop's

	mu   sync.Mutex // held while reading: what is read later is newer
	last atomic.Pointer[map[string]LaneDecision]
	done *map[string]LaneDecision // the loop's: the decisions that the lanes know
}

// Pause leaves a destination alone until somebody resumes it. Nothing more is begun there,
// attempts in hand end, and messages wait, uncharged, while their TTL runs on. A pause is
// durable and holds for every dispatcher of the store within a few seconds. If the
// destination is paused already, Pause changes nothing. It needs Lanes.
func (d *Dispatcher) Pause(ctx context.Context, destination, actor string) error {
	if d.Lanes == nil {
		return fmt.Errorf("pause %s: %w: the dispatcher has no Lanes to keep it", destination, ErrState)
	}
	if err := d.Lanes.PauseLane(ctx, destination, actor); err != nil {
		return err
	}
	return d.learn(ctx)
}

// Resume ends a pause. If the destination is held or down, it is tried at once.
func (d *Dispatcher) Resume(ctx context.Context, destination, actor string) error {
	if d.Lanes == nil {
		return fmt.Errorf("resume %s: %w: the dispatcher has no Lanes to keep it", destination, ErrState)
	}
	if err := d.Lanes.ResumeLane(ctx, destination, actor); err != nil {
		return err
	}
	return d.learn(ctx)
}

func (d *Dispatcher) learn(ctx context.Context) error {
	r := d.running.Load()
	if r == nil {
		return nil // the next run reads it
	}
	return r.decisions.read(ctx)
}

func (k *decisions) read(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	list, err := k.lanes.LaneDecisions(ctx)
	if err != nil {
		return err
	}
	byName := make(map[string]LaneDecision, len(list))
	for _, d := range list {
		byName[d.Destination] = d
	}
	k.last.Store(&byName)
	select {
	case k.ring <- struct{}{}:
	default:
	}
	return nil
}

// follow reads the decisions every few seconds until ctx ends. If they cannot be read,
// they stay as they were.
func (k *decisions) follow(ctx context.Context) {
	tick := time.NewTicker(decisionsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := k.read(ctx); err != nil && ctx.Err() == nil {
			k.log.DebugContext(ctx, "decisions about destinations not read", slog.Any("error", err))
		}
	}
}

// obey tells the lanes the decisions that were read.
func (r *dispatch) obey() {
	last := r.decisions.last.Load()
	if last == r.decisions.done {
		return
	}
	before := r.decisions.done
	r.decisions.done = last
	for name := range *last {
		r.obeyFor(r.lanes[name], (*last)[name])
	}
	for name := range *before {
		if _, decided := (*last)[name]; !decided {
			r.obeyFor(r.lanes[name], LaneDecision{})
		}
	}
}

func (r *dispatch) obeyFor(l *laneRun, d LaneDecision) {
	if l == nil {
		return
	}
	switch l.decide(d, time.Now()) {
	case lanePaused:
		r.log.WarnContext(r.work, "destination paused by a person", slog.String("destination", l.name), slog.String("actor", d.Actor))
		r.shut(l)
	case laneResumed:
		r.log.InfoContext(r.work, "destination resumed by a person", slog.String("destination", l.name), slog.String("actor", d.Actor))
		r.agenda.mark(l)
	case laneUntouched:
	}
}

// touch is the effect of a person's decision on a lane.
type touch int

const (
	laneUntouched touch = iota
	lanePaused
	laneResumed
)

// decide makes the lane follow a decision. A resumed lane is tried at once, even if it was
// held or down.
func (l *laneRun) decide(d LaneDecision, now time.Time) touch {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.decision
	l.decision = d
	switch {
	case d.Paused && !was.Paused:
		return lanePaused
	case d.Paused || d.Version <= was.Version:
		return laneUntouched
	}
	l.held, l.more = false, true
	l.resume, l.asked, l.nextProbe = time.Time{}, time.Time{}, now
	return laneResumed
}
