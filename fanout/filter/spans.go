package filter

import (
	"cmp"
	"math/rand/v2"
)

// spans is a set of spans of keys that knows which of them have a key within. It is a treap: a tree
// by lo and hi, and a heap by weights that are random. Each node knows the greatest hi below it.
type spans struct{ root *span }

type span struct {
	bounds

	to          *node
	weight      uint64
	last        string // greatest hi here and below
	left, right *span
}

func (b bounds) compare(other bounds) int {
	return cmp.Or(cmp.Compare(b.lo, other.lo), cmp.Compare(b.hi, other.hi))
}

// stab calls visit for each span that has the key.
func (s *spans) stab(key string, visit func(*node)) { s.root.stab(key, visit) }

func (s *span) stab(key string, visit func(*node)) {
	for s != nil && key < s.last {
		s.left.stab(key, visit)
		if key < s.lo {
			return
		}
		if key < s.hi {
			visit(s.to)
		}
		s = s.right
	}
}

// add adds a span that is not there yet.
func (s *spans) add(b bounds, to *node) {
	s.root = s.root.add(&span{bounds: b, to: to, weight: rand.Uint64()}) //nolint:gosec // balance, not secrecy
}

func (s *span) add(own *span) *span {
	switch {
	case s == nil:
		return own.fix()
	case own.weight > s.weight:
		own.left, own.right = s.split(own.bounds)
		return own.fix()
	case own.compare(s.bounds) < 0:
		s.left = s.left.add(own)
	default:
		s.right = s.right.add(own)
	}
	return s.fix()
}

// split parts what is below b from what is above it.
func (s *span) split(b bounds) (below, above *span) {
	if s == nil {
		return nil, nil
	}
	if s.compare(b) < 0 {
		s.right, above = s.right.split(b)
		return s.fix(), above
	}
	below, s.left = s.left.split(b)
	return below, s.fix()
}

// remove removes a span that is there.
func (s *spans) remove(b bounds) { s.root = s.root.remove(b) }

func (s *span) remove(b bounds) *span {
	switch way := b.compare(s.bounds); {
	case way == 0:
		return s.left.merge(s.right)
	case way < 0:
		s.left = s.left.remove(b)
	default:
		s.right = s.right.remove(b)
	}
	return s.fix()
}

// merge joins two trees of which all spans of the other come after those of s.
func (s *span) merge(other *span) *span {
	switch {
	case s == nil:
		return other
	case other == nil:
		return s
	case s.weight > other.weight:
		s.right = s.right.merge(other)
		return s.fix()
	}
	other.left = s.merge(other.left)
	return other.fix()
}

func (s *span) fix() *span {
	s.last = s.hi
	for _, child := range []*span{s.left, s.right} {
		if child != nil {
			s.last = max(s.last, child.last)
		}
	}
	return s
}
