package webhook

import "sync"

// mostShared is how many clients, and how many tokens, are kept for the targets that share them.
const mostShared = 256

// shared keeps one value for each key. It forgets the one that was used longest ago when there are
// too many. The zero value is ready to use.
type shared[K comparable, V any] struct {
	mu   sync.Mutex
	uses uint64
	all  map[K]*used[V]
}

type used[V any] struct {
	value V
	last  uint64
}

// get returns the value of a key, which create makes if there is none. gone is the value that was
// forgotten instead, or zero.
func (s *shared[K, V]) get(key K, create func() (V, error)) (value, gone V, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
	if u := s.all[key]; u != nil {
		u.last = s.uses
		return u.value, gone, nil
	}
	if value, err = create(); err != nil {
		return value, gone, err
	}
	if s.all == nil {
		s.all = map[K]*used[V]{}
	}
	if len(s.all) == mostShared {
		oldest := key
		for k, u := range s.all {
			if oldest == key || u.last < s.all[oldest].last {
				oldest = k
			}
		}
		gone = s.all[oldest].value
		delete(s.all, oldest)
	}
	s.all[key] = &used[V]{value, s.uses}
	return value, gone, nil
}

// each calls yield for each value.
func (s *shared[K, V]) each(yield func(V)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.all {
		yield(u.value)
	}
}
