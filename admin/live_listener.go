package admin

import (
	"slices"
	"sync"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// How many may listen. A browser has one stream for all its pages.
const (
	mostListeners = 256
	mostPerCaller = 64
)

// listeners are those who listen to hints. The zero value has none.
type listeners struct {
	mu    sync.Mutex
	all   map[*listener]struct{}
	by    map[string]int // callers
	ring  chan struct{}  // gets a value when somebody came
	looks bool           // the part of the node that looks for changes runs
}

// listener is one who listens. It keeps what it has not been told yet.
type listener struct {
	caller string
	scope  api.Scope
	ring   chan struct{}

	mu    sync.Mutex
	hints map[string]*merged // by kind
	last  int64
	met   bool // it was told where the log stands
}

// merged is what a hint will say.
type merged struct {
	ids  map[string]struct{}
	more int64
}

// open lets listeners come, and returns what rings when one came, and what ends it.
func (all *listeners) open() (came <-chan struct{}, end func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all == nil {
		all.all, all.by, all.ring = map[*listener]struct{}{}, map[string]int{}, make(chan struct{}, 1)
	}
	all.looks = true
	return all.ring, func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		all.looks = false
	}
}

func (all *listeners) some() bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.all) > 0
}

func (all *listeners) add(caller string, scope api.Scope) (*listener, *api.Problem) {
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case !all.looks:
		return nil, api.Busy.Problem("the node does not look for changes now: it starts, or stops").With("Retry-After", "1")
	case len(all.all) >= mostListeners:
		return nil, crowd("the node", mostListeners)
	case all.by[caller] >= mostPerCaller:
		return nil, crowd("the caller", mostPerCaller)
	}
	one := &listener{caller: caller, scope: scope, ring: make(chan struct{}, 1), hints: map[string]*merged{}}
	all.all[one] = struct{}{}
	all.by[caller]++
	select {
	case all.ring <- struct{}{}:
	default:
	}
	return one, nil
}

func (all *listeners) remove(one *listener) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.all, one)
	if all.by[one.caller]--; all.by[one.caller] == 0 {
		delete(all.by, one.caller)
	}
}

// tell gives each listener the news that it may hear.
func (all *listeners) tell(s *Service, n *news) {
	all.mu.Lock()
	list := make([]*listener, 0, len(all.all))
	for one := range all.all {
		list = append(list, one)
	}
	all.mu.Unlock()
	for _, one := range list {
		one.hear(s, n)
	}
}

// hear merges news into what the listener will be told.
func (one *listener) hear(s *Service, n *news) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.last = n.last
	has := func(destination string) bool { return one.scope.Has(s.here(destination)) }
	if one.met {
		one.merge(n, has)
	}
	if !one.met || len(one.hints) > 0 {
		one.met = true
		select {
		case one.ring <- struct{}{}:
		default:
		}
	}
}

func (one *listener) merge(n *news, has func(destination string) bool) {
	counts := one.scope.Whole() && (n.all || n.more > 0)
	for name := range n.lanes {
		counts = counts || has(name)
	}
	if counts {
		one.add(api.HintCounts, "")
	}
	for i := range n.acts {
		a := &n.acts[i]
		if !has(a.Destination) {
			continue
		}
		if kind, _ := kindOf(a.Destination); kind == api.HintChannel {
			one.addMore(api.HintNotification, 1) // the notification's id is in the copy, which is not read here
		} else {
			one.add(api.HintMessage, string(a.Message))
		}
	}
	// Whose they are is not known. One who may not see all hears of what may be the own, by its counts.
	if n.more > 0 && counts {
		more := n.more
		if !one.scope.Whole() {
			more = 1
		}
		one.addMore(api.HintMessage, more)
		one.addMore(api.HintNotification, 1)
	}
	for destination := range n.fares {
		if has(destination) {
			one.add(kindOf(destination))
		}
	}
}

func (one *listener) of(kind string) *merged {
	if one.hints[kind] == nil {
		one.hints[kind] = &merged{ids: map[string]struct{}{}}
	}
	return one.hints[kind]
}

func (one *listener) addMore(kind string, n int64) { one.of(kind).more += n }

func (one *listener) add(kind, id string) {
	m := one.of(kind)
	if _, known := m.ids[id]; known || id == "" {
		return
	}
	if len(m.ids) == mostNamed {
		m.more++
		return
	}
	m.ids[id] = struct{}{}
}

// position returns the number of the newest act that the listener was told of.
func (one *listener) position() int64 {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.id()
}

// id is the id of an event. Those for a narrowed listener all have the same: the number would tell how much others
// do.
func (one *listener) id() int64 {
	if !one.scope.Whole() {
		return min(one.last, 1)
	}
	return one.last
}

// take returns the hints, and forgets them.
func (one *listener) take() (list []api.LiveEvent) {
	one.mu.Lock()
	defer one.mu.Unlock()
	for _, kind := range api.HintKinds() {
		m := one.hints[kind]
		if m == nil {
			continue
		}
		h := api.Hint{More: m.more}
		for id := range m.ids {
			h.IDs = append(h.IDs, id)
		}
		slices.Sort(h.IDs)
		list = append(list, api.LiveEvent{ID: one.id(), Kind: kind, Hint: &h})
	}
	clear(one.hints)
	return list
}
