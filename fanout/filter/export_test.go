package filter

// Asked returns how many filters Match asks about an event. It is what Match costs, apart from the
// way to them.
func (x *Index) Asked(e *Event) int {
	s := search{event: e}
	s.at(&x.root)
	return len(s.found)
}

// Nodes returns how many nodes of its tree an index keeps.
func (x *Index) Nodes() int { return x.root.nodes() }

func (n *node) nodes() int {
	sum := 1
	for _, down := range n.down {
		for _, steps := range down {
			for _, next := range steps.nodes {
				sum += next.nodes()
			}
		}
	}
	return sum
}
