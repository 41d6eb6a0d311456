package filter

import (
	"cmp"
	"slices"
	"sync"
)

// Index holds the filters of subscriptions. The zero value is empty and ready. Several goroutines
// may use an Index. Put, Set and Remove hold the others up, for about a millisecond at most: filters are compiled before.
type Index struct {
	mu   sync.RWMutex
	subs map[string]*subscription
	root node
	// shared counts the ways that have an atom which holds also without its field.
	shared map[atom]int
}

// subscription is one id with what it asks for.
type subscription struct {
	id      string
	clause  clause
	entries []entry
}

// EveryTopic among the topics of a subscription stands for all of them.
const EveryTopic = "*"

// Compiled is what a subscription asks for, ready for an index. The zero value asks for nothing.
type Compiled struct {
	id  string
	sub *subscription // nil: no event
}

// Compile makes ready what a subscription asks for: the events of its topics that meet f. Without topics it gets
// none. If f is not valid, whatever the limits, Compile returns what Validate says, and a Compiled that gets none.
// It may take milliseconds, and holds nobody up.
func Compile(id string, topics []string, f Filter) (Compiled, error) {
	err := f.Validate(unlimited())
	if err != nil || len(topics) == 0 {
		return Compiled{id: id}, err
	}
	s := &subscription{id: id, clause: compile(&f)}
	if !slices.Contains(topics, EveryTopic) {
		s.clause = clause{junction: allOf, of: []clause{oneOf(field{source: ofTopic}, topics), s.clause}}
	}
	for _, w := range ways(&s.clause) {
		s.entries = append(s.entries, entry{of: s, atoms: w})
	}
	return Compiled{id, s}, nil
}

// Put adds a subscription, or replaces it. A Compiled is put into one index, once.
func (x *Index) Put(c Compiled) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(c.id)
	if c.sub == nil {
		return
	}
	if x.subs == nil {
		x.subs, x.shared = map[string]*subscription{}, map[atom]int{}
	}
	x.subs[c.id] = c.sub
	for i := range c.sub.entries {
		x.arrange(c.sub.entries[i].atoms)
		x.root.add(&c.sub.entries[i], 0)
	}
}

// Set is Compile and Put. The others are not affected by an error.
func (x *Index) Set(id string, topics []string, f Filter) error {
	c, err := Compile(id, topics, f)
	x.Put(c)
	return err
}

// Remove removes a subscription, if there is one.
func (x *Index) Remove(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(id)
}

func (x *Index) remove(id string) {
	s, there := x.subs[id]
	if !there {
		return
	}
	for i := range s.entries {
		s.entries[i].remove()
		for _, a := range s.entries[i].atoms {
			if x.shared[*a] > 1 {
				x.shared[*a]--
			} else {
				delete(x.shared, *a)
			}
		}
	}
	delete(x.subs, id)
}

// arrange puts the atoms of a way in the order of its steps, and counts them. Those that need their
// field come first, since an event has few fields. Of the others, what many ways share comes before
// what few do, so that an event passes or fails it once for all of them.
func (x *Index) arrange(w way) {
	for _, a := range w {
		if a.form >= isKeyOrAbsent {
			x.shared[*a]++
		}
	}
	type counted struct {
		*atom

		shared int
	}
	order := make([]counted, len(w))
	for i, a := range w {
		order[i] = counted{a, x.shared[*a]}
	}
	slices.SortStableFunc(order, func(a, b counted) int {
		return cmp.Or(
			cmp.Compare(min(a.form, isKeyOrAbsent), min(b.form, isKeyOrAbsent)),
			cmp.Compare(b.shared, a.shared),
			cmp.Compare(a.field.source, b.field.source))
	})
	for i := range order {
		w[i] = order[i].atom
	}
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
	s := search{event: e}
	s.at(&x.root)
	slices.SortFunc(s.found, func(a, b *subscription) int { return cmp.Compare(a.id, b.id) })
	var ids []string
	for _, one := range slices.Compact(s.found) {
		if one.clause.holds(e) {
			ids = append(ids, one.id)
		}
	}
	return ids
}
