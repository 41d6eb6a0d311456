package filter

// texts are the texts of isContaining or isNotContaining on one field. All that stand in a text are
// found in one pass over it.
type texts struct {
	spans spans // of what begins with each
	// heads counts those that begin so, and sizes the heads of that many bytes. Most places of a text are passed
	// by one look into heads.
	heads map[string]int
	sizes [headSize + 1]int
}

// headSize is how many bytes a head has, unless the whole text is shorter.
const headSize = 4

func head(s string) string { return s[:min(len(s), headSize)] }

func (t *texts) add(b bounds, to *node) {
	if t.heads == nil {
		t.heads = map[string]int{}
	}
	t.spans.add(b, to)
	t.heads[head(b.lo)]++
	t.sizes[len(head(b.lo))]++
}

func (t *texts) remove(b bounds) {
	t.spans.remove(b)
	h := head(b.lo)
	t.sizes[len(h)]--
	if t.heads[h]--; t.heads[h] == 0 {
		delete(t.heads, h)
	}
}

// find calls visit once for each of the texts that stands in s.
func (t *texts) find(s string, visit func(*span)) {
	p := pass{visit: visit}
	for i := range len(s) {
		if t.begins(s[i:]) {
			p.at(t.spans.root, s[i:])
		}
	}
}

// begins reports whether one of the texts may be the beginning of s.
func (t *texts) begins(s string) bool {
	for n := 1; n <= min(len(s), headSize); n++ {
		if t.sizes[n] > 0 && t.heads[s[:n]] > 0 {
			return true
		}
	}
	return false
}

// pass visits spans by one key after the other, each span once. It leaves out what it has visited, so that texts
// that begin with each other, in an event that repeats them, cost no more than others.
type pass struct {
	visit func(*span)
	rest  map[*span]rest
}

// rest is what is left of a span and those below.
type rest struct {
	last    string // greatest hi that is not visited yet; empty: none
	visited bool   // the span itself
}

func (p *pass) of(s *span) rest {
	if s == nil {
		return rest{}
	}
	if r, changed := p.rest[s]; changed {
		return r
	}
	return rest{last: s.last}
}

// at reports whether it visited a span.
func (p *pass) at(s *span, key string) (some bool) {
	r := p.of(s)
	if key >= r.last {
		return false
	}
	some = p.at(s.left, key)
	if key >= s.lo {
		if !r.visited && key < s.hi {
			r.visited, some = true, true
			p.visit(s)
		}
		some = p.at(s.right, key) || some
	}
	if some {
		r.last = max(p.of(s.left).last, p.of(s.right).last)
		if !r.visited {
			r.last = max(r.last, s.hi)
		}
		if p.rest == nil {
			p.rest = map[*span]rest{}
		}
		p.rest[s] = r
	}
	return some
}
