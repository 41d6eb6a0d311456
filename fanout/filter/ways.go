package filter

import (
	"cmp"
	"slices"
)

// way is one of the ways in which a clause can hold: atoms that all must. They are necessary and
// perhaps not sufficient.
type way []*atom

// MaxWays bounds the ways in which the filter of a subscription can hold that the index looks up. A filter
// with more is evaluated for more events than it lets pass, and an any with more for each.
const MaxWays = 256

// ways returns the ways in which c can hold. A clause that never holds has none.
func ways(c *clause) []way {
	switch c.junction {
	case single:
		return []way{{&c.atom}}
	case anyOf:
		var list []way
		for i := range c.of {
			if list = append(list, ways(&c.of[i])...); len(list) > MaxWays {
				return []way{{}}
			}
		}
		return list
	case allOf:
	}
	factors := make([][]way, len(c.of))
	for i := range c.of {
		factors[i] = ways(&c.of[i])
	}
	slices.SortStableFunc(factors, func(a, b []way) int { return cmp.Compare(len(a), len(b)) })
	list := []way{{}}
	for _, f := range factors {
		if both, ok := product(list, f); ok {
			list = both
		}
	}
	return list
}

// product returns the ways in which one of the left and one of the right hold; not ok: they are too many. Ways that
// name two keys of one field do not hold together, so that topics cost nothing beside groups that name theirs.
func product(left, right []way) (list []way, ok bool) {
	for _, l := range left {
		for _, r := range right {
			if l.excludes(r) {
				continue
			}
			if len(list) == MaxWays {
				return nil, false
			}
			list = append(list, l.and(r))
		}
	}
	return list, true
}

func (w way) excludes(other way) bool {
	for _, a := range w {
		for _, b := range other {
			if a.form == isKey && b.form == isKey && a.field == b.field && a.lo != b.lo {
				return true
			}
		}
	}
	return false
}

// and joins two ways. Spans of one field become one, so that one search finds what lies between two
// bounds.
func (w way) and(other way) way {
	joined := slices.Clone(w)
	for _, a := range other {
		if slices.ContainsFunc(w, func(b *atom) bool { return *a == *b }) {
			continue
		}
		i := slices.IndexFunc(w, func(b *atom) bool { return a.form == isWithin && b.form == isWithin && a.field == b.field })
		if i < 0 {
			joined = append(joined, a)
			continue
		}
		joined[i] = &atom{a.field, isWithin, max(a.lo, joined[i].lo), min(a.hi, joined[i].hi)}
	}
	return joined
}
