package filter

// search is the way of one event through the tree.
type search struct {
	event *Event
	// found are the subscriptions that the event may concern: of one way each, all atoms hold by
	// which the tree divides. One may stand there several times.
	found []*subscription
}

// at looks at n and what an event meets below it.
func (s *search) at(n *node) {
	for _, e := range n.here {
		s.found = append(s.found, e.of)
	}
	for _, form := range []form{isKey, isWithin, isContaining, isPresent} {
		s.present(form, n.down[form])
	}
	for f, steps := range n.down[isKeyOrAbsent] {
		if v := s.event.value(f); v.ok {
			s.step(steps, v.key)
		} else {
			s.all(steps, "")
		}
	}
	for f, steps := range n.down[isNotKey] {
		s.all(steps, s.event.value(f).key)
	}
	for f, steps := range n.down[isAbsent] {
		if !s.event.value(f).ok {
			s.step(steps, "")
		}
	}
	for f, steps := range n.down[isNotContaining] {
		s.containing(f, steps, false)
	}
}

// manyFields is how many fields of a node are asked for one by one. If there are more, the fields
// of the event are looked up instead, if they are fewer.
const manyFields = 32

// present takes the steps that only a field that is there can take.
func (s *search) present(form form, down map[field]*steps) {
	if len(down) > manyFields && s.event.mostFields() < len(down) {
		for _, f := range s.event.fields() {
			if steps := down[f]; steps != nil {
				s.by(form, f, steps)
			}
			if f.backwards = form == isWithin; f.backwards && down[f] != nil {
				s.by(form, f, down[f])
			}
		}
		return
	}
	for f, steps := range down {
		s.by(form, f, steps)
	}
}

func (s *search) by(form form, f field, steps *steps) {
	v := s.event.value(f)
	switch {
	case !v.ok:
	case form == isKey:
		s.step(steps, v.key)
	case form == isPresent:
		s.step(steps, "")
	case form == isContaining:
		s.containing(f, steps, true)
	default:
		steps.spans.stab(v.key, s.at)
	}
}

// fewTexts is how many texts are searched for one by one. If there are more, one pass finds those that are there.
const fewTexts = 16

// containing takes the steps of the texts that stand in a field, or of those that do not.
func (s *search) containing(f field, steps *steps, there bool) {
	if len(steps.nodes) <= fewTexts {
		for b, n := range steps.nodes {
			if s.event.contains(f, b.lo) == there {
				s.at(n)
			}
		}
		return
	}
	text, _ := s.event.value(f).text()
	found := map[*node]bool{}
	steps.texts.find(text, func(one *span) { found[one.to] = true })
	if !there {
		for b, n := range steps.nodes {
			if !found[n] {
				s.known(f, b.lo, text, false)
				s.at(n)
			}
		}
		return
	}
	for n := range found {
		s.known(f, n.by.lo, text, true)
		s.at(n)
	}
}

// known spares the filters that are found another search of a long text.
func (s *search) known(f field, part, text string, there bool) {
	if len(text) >= longText {
		s.event.know(f, part, there)
	}
}

func (s *search) step(steps *steps, key string) {
	if n := steps.nodes[bounds{lo: key}]; n != nil {
		s.at(n)
	}
}

// all takes all steps but that of a key. No step has the key of an absent field.
func (s *search) all(steps *steps, but string) {
	for b, n := range steps.nodes {
		if b.lo != but {
			s.at(n)
		}
	}
}
