package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/activity"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// Live tells pages that something changed, so that they ask again. It sends hints and no content, and nothing
// outside of the caller's scope.
//
// One part of the node (Run) looks for all listeners: it compares counts and lanes in memory, and reads the
// activity log from where it stands. While nobody listens it does nothing. A listener that is slow gets its
// hints merged; it costs a bounded number of ids, and nobody else waits for it.
type Live struct{ *Service }

const (
	// glanceEvery is how often a listener hears something at most.
	glanceEvery = 500 * time.Millisecond
	// lanesEvery is how many glances later lanes are compared again: there may be thousands.
	lanesEvery = 2
	// mostNamed is how many ids one hint has. More changes in one glance, as in a drain, have none.
	mostNamed = 100
	// aliveEvery is how often a listener is told that nothing happened, so that proxies keep the connection.
	aliveEvery = 15 * time.Second
)

// glance is what the node looked like at one moment.
type glance struct {
	counts holdfast.Counts
	lanes  map[string]string // by destination: its state and problem
	acts   int64             // number of the newest act
	known  bool              // that number was read
	round  int
}

// news is what changed between two glances.
type news struct {
	all   bool              // a number of the whole node
	lanes map[string]bool   // destinations with other counts, or acts
	acts  []activity.Act    // at most mostNamed
	more  int64             // acts that are not in acts
	fares map[string]string // destinations whose lanes fare differently
	last  int64             // number of the newest act
}

// Run looks for changes while somebody listens, until ctx ends.
func (l Live) Run(ctx context.Context) error {
	came, end := l.listeners.open()
	defer end()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-came:
		}
		l.watch(ctx)
	}
}

// watch looks until nobody listens.
func (l Live) watch(ctx context.Context) {
	tick := time.NewTicker(glanceEvery)
	defer tick.Stop()
	var seen glance
	l.look(ctx, &seen)
	for l.listeners.tell(l.Service, &news{last: seen.acts}); l.listeners.some(); {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.listeners.tell(l.Service, l.look(ctx, &seen))
	}
}

// look compares what is with what was seen, and takes note of it.
func (l Live) look(ctx context.Context, seen *glance) *news {
	counts := l.Outbox.Counts()
	n := &news{all: others(counts) != others(seen.counts), lanes: map[string]bool{}, fares: map[string]string{}, last: seen.acts}
	for name, c := range counts.Lanes {
		if c != seen.counts.Lanes[name] {
			n.lanes[name] = true
		}
	}
	for name := range seen.counts.Lanes {
		if _, is := counts.Lanes[name]; !is {
			n.lanes[name] = true
		}
	}
	seen.counts = counts
	if seen.round++; l.Lanes != nil && seen.round%lanesEvery == 1 {
		now := map[string]string{}
		for _, lane := range l.Lanes() {
			now[lane.Destination] = laneState(lane) + " " + lane.Problem
			if was, is := seen.lanes[lane.Destination]; seen.lanes != nil && (!is || was != now[lane.Destination]) {
				n.fares[lane.Destination] = now[lane.Destination]
			}
		}
		for name := range seen.lanes {
			if _, is := now[name]; !is {
				n.fares[name] = ""
			}
		}
		seen.lanes = now
	}
	l.acts(ctx, seen, n)
	return n
}

// others are the counts that no destination has.
func others(c holdfast.Counts) [6]int64 {
	return [...]int64{c.Pending, c.Claimed, c.Parked, c.Expired, c.Inbox + c.Received, c.Kept}
}

// acts adds what the activity log has that is new. A store that cannot say now is asked again at the next
// glance, from the same place.
func (l Live) acts(ctx context.Context, seen *glance, n *news) {
	if !l.named() {
		return
	}
	_, newest, err := l.Activity.Ends(ctx)
	if err != nil {
		return
	}
	fresh := newest - seen.acts
	switch {
	case !seen.known: // what was before is not news
	case fresh < 0: // an older copy of the store was restored
		n.all = true
	case fresh > mostNamed:
		n.more = fresh
	case fresh > 0:
		if n.acts, err = l.Activity.Acts(ctx, activity.Query{}, activity.Range{After: seen.acts, Before: newest + 1, Limit: mostNamed}); err != nil {
			return
		}
		for i := range n.acts {
			n.lanes[n.acts[i].Destination] = true
		}
	}
	seen.acts, seen.known, n.last = newest, true, newest
}

// Follow lets the caller listen. last is the id of the last event that it has heard; zero: none. follow calls
// send with a Hello, then with hints, at most twice a second, and with an event without a kind now and then,
// until ctx ends, send fails, or the node stops. It must be called.
func (l Live) Follow(ctx context.Context, last int64) (follow func(ctx context.Context, send func(list []api.LiveEvent) error) error, err error) {
	one, p := l.listeners.add(Actor(ctx), Granted(ctx).Scope)
	if p != nil {
		return nil, p
	}
	return func(ctx context.Context, send func(list []api.LiveEvent) error) error {
		defer l.listeners.remove(one)
		alive := time.NewTicker(aliveEvery)
		defer alive.Stop()
		for greeted := false; ; {
			var list []api.LiveEvent
			select {
			case <-ctx.Done():
				return nil
			case <-l.Stopping:
				return nil
			case <-alive.C:
				list = []api.LiveEvent{{}}
			case <-one.ring:
				list = one.take()
				if !greeted {
					list = slices.Insert(list, 0, l.hello(one, last))
					greeted = true
				}
			}
			if err := send(list); err != nil {
				return err
			}
			alive.Reset(aliveEvery)
		}
	}, nil
}

func (l Live) hello(one *listener, last int64) api.LiveEvent {
	h := api.Hello{Now: time.Now().UTC(), Messages: l.named(), Resumed: last > 0}
	at := one.position()
	if missed := at - last; h.Resumed && h.Messages && missed >= 0 && one.scope.Whole() {
		h.Missed = &missed
	}
	return api.LiveEvent{ID: at, Kind: api.HintHello, Hello: &h}
}

// named reports whether there is a log that names what changes.
func (l Live) named() bool { return l.Activity != nil && !l.ActivityOff }

// kindOf says what a destination is to people.
func kindOf(destination string) (kind, name string) {
	if channel, is := notify.ChannelOf(destination); is {
		return api.HintChannel, channel
	}
	return api.HintDestination, destination
}

// crowd refuses another listener.
func crowd(what string, most int) *api.Problem {
	return api.Busy.Problem(fmt.Sprintf("%s has %d streams of hints open, and that is the most: ask for what is shown every 10 s instead, or close another page", what, most)).
		With("Retry-After", "10")
}
