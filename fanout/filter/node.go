package filter

// node is a place in the tree of an index. Each step down is one atom. A few entries stay where
// they are; many go down, each by one of its atoms, so that an event comes only to those whose
// atoms on the way hold.
type node struct {
	up      *node
	by      atom // the step from up to here
	count   int  // entries here and below
	here    []*entry
	divided bool
	down    [forms]map[field]*steps
}

// steps are the ways down by atoms of one form on one field.
type steps struct {
	nodes map[bounds]*node
	spans spans  // of isWithin, the same in order
	texts *texts // of isContaining and isNotContaining, the same again
}

// bounds are lo and hi of an atom.
type bounds struct{ lo, hi string }

// entry is one way of a subscription in the tree.
type entry struct {
	of    *subscription
	atoms way // in the order of steps
	at    *node
	place int // in at.here
}

// crowd is how many entries a node asks one by one.
const crowd = 8

// add adds an entry below n, which lies depth steps below the root.
func (n *node) add(e *entry, depth int) {
	for n.count++; n.divided && depth < len(e.atoms); n.count++ {
		n = n.step(e.atoms[depth])
		depth++
	}
	e.at, e.place = n, len(n.here)
	n.here = append(n.here, e)
	if !n.divided && len(n.here) > crowd {
		n.divide(depth)
	}
}

// divide moves down the entries of n that have atoms left.
func (n *node) divide(depth int) {
	all := n.here
	n.here, n.count, n.divided = nil, 0, true
	for _, e := range all {
		n.add(e, depth)
	}
}

// next returns the node one step down, or nil.
func (n *node) next(a *atom) *node {
	if s := n.down[a.form][a.field]; s != nil {
		return s.nodes[bounds{a.lo, a.hi}]
	}
	return nil
}

// step returns next, and makes it if there is none.
func (n *node) step(a *atom) *node {
	if next := n.next(a); next != nil {
		return next
	}
	if n.down[a.form] == nil {
		n.down[a.form] = map[field]*steps{}
	}
	s := n.down[a.form][a.field]
	if s == nil {
		s = &steps{nodes: map[bounds]*node{}}
		n.down[a.form][a.field] = s
	}
	next := &node{up: n, by: *a}
	s.nodes[bounds{a.lo, a.hi}] = next
	switch b := (bounds{a.lo, a.hi}); a.form {
	case isWithin:
		s.spans.add(b, next)
	case isContaining, isNotContaining:
		if s.texts == nil {
			s.texts = &texts{}
		}
		s.texts.add(b, next)
	case isKey, isPresent, isKeyOrAbsent, isNotKey, isAbsent:
	}
	return next
}

// remove takes an entry out, and the nodes that nobody needs any more.
func (e *entry) remove() {
	here := e.at.here
	last := len(here) - 1
	here[e.place] = here[last]
	here[e.place].place = e.place
	here[last] = nil
	e.at.here = here[:last]
	for n := e.at; n != nil; n = n.up {
		if n.count--; n.count > 0 {
			continue
		}
		n.here, n.divided, n.down = nil, false, [forms]map[field]*steps{}
		if n.up != nil {
			n.up.forget(n)
		}
	}
}

// forget removes an empty node below n.
func (n *node) forget(empty *node) {
	a := &empty.by
	s := n.down[a.form][a.field]
	delete(s.nodes, bounds{a.lo, a.hi})
	switch b := (bounds{a.lo, a.hi}); a.form {
	case isWithin:
		s.spans.remove(b)
	case isContaining, isNotContaining:
		s.texts.remove(b)
	case isKey, isPresent, isKeyOrAbsent, isNotKey, isAbsent:
	}
	if len(s.nodes) == 0 {
		delete(n.down[a.form], a.field)
	}
}
