package filter

import (
	"slices"
	"sync"
)

// Index holds the filters of subscriptions. The zero value is empty and ready. Several goroutines
// may use an Index.
type Index struct {
	mu   sync.RWMutex
	subs map[string]*subscription
}

// subscription is one id with what it asks for.
type subscription struct {
	id     string
	clause clause
}

// EveryTopic among the topics of a subscription stands for all of them.
const EveryTopic = "*"

// Set adds a subscription, or replaces it. It gets the events of its topics that meet f. Without
// topics it gets none. If f is not valid, whatever the limits, Set returns what Validate says, and the
// subscription gets no events until it is set again; the others are not affected.
func (x *Index) Set(id string, topics []string, f Filter) error {
	err := f.Validate(unlimited())
	if err != nil || len(topics) == 0 {
		x.Remove(id)
		return err
	}
	s := &subscription{id: id, clause: compile(&f)}
	if !slices.Contains(topics, EveryTopic) {
		s.clause = clause{junction: allOf, of: []clause{oneOf(field{source: ofTopic}, topics), s.clause}}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.subs == nil {
		x.subs = map[string]*subscription{}
	}
	x.subs[id] = s
	return nil
}

// Remove removes a subscription, if there is one.
func (x *Index) Remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.subs, id)
}

// Len returns how many subscriptions there are that can get events.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.subs)
}

// Match returns the ids of the subscriptions that e concerns, sorted. It sees each Set and each
// Remove wholly or not at all.
func (x *Index) Match(e *Event) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var ids []string
	for id, s := range x.subs {
		if s.clause.holds(e) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
