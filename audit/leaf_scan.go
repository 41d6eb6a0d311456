package audit

import (
	"bytes"
	"encoding/binary"
	"time"
	"unicode/utf8"
)

// scan reads those fields from a leaf that columns stand for, and reports whether it could: for a verification, which reads
// millions, Read costs more than hashing does. It knows only the form in which Leaf writes a record that says nothing
// about logs, and that has no sealed field. If it reports false, Read must read or refuse the leaf. The other fields of
// the record stay as they are. Texts that are those of the record before are not made anew.
func (r *Record) scan(data []byte) bool {
	s := leafScan{rest: data}
	s.word(`{"v":1`)
	id, at := s.text(`,"id":"`), s.text(`,"at":"`)
	channel, kind, status := s.text(`,"channel":"`), s.text(`,"kind":"`), s.text(`,"status":"`)
	corr := s.optional(`,"corr":"`)
	s.skip(`,"exec":"`)
	s.skip(`,"parent":"`)
	s.skip(`,"trace":"`)
	site, node := s.text(`,"site":"`), s.text(`,"node":"`)
	instance := s.optional(`,"instance":"`)
	s.skip(`,"script":"`)
	actor, target := s.optional(`,"actor":"`), s.optional(`,"target":"`)
	s.count(`,"http":`)
	s.count(`,"tookUs":`)
	s.skip(`,"error":"`)
	s.skip(`,"request":"`)
	s.skip(`,"response":"`)
	if s.has(`,"extra":`) {
		s.value(0)
	}
	if s.word(`}`); s.odd || len(s.rest) > 0 || Kind(kind) == Gap || aboutLogs(Kind(kind)) {
		return false
	}
	var err error
	if r.Occurred, err = time.Parse(leafTime, string(at)); err != nil {
		return false
	}
	r.Personal, r.Erased = nil, nil
	again(&r.ID, id)
	again(&r.Channel, channel)
	again(&r.Kind, kind)
	again(&r.Status, status)
	again(&r.Correlation, corr)
	again(&r.Site, site)
	again(&r.Node, node)
	again(&r.Instance, instance)
	again(&r.Actor, actor)
	again(&r.Target, target)
	return true
}

// again sets a text, unless it is that already.
func again[T ~string](to *T, text []byte) {
	if string(*to) != string(text) {
		*to = T(text)
	}
}

// leafScan reads JSON without spaces. Whatever it does not know makes it odd.
type leafScan struct {
	rest []byte
	odd  bool
}

// scanDepth is how deep values may be nested. A deeper one is odd.
const scanDepth = 20

// has reports whether a word comes next, and passes it.
func (s *leafScan) has(word string) bool {
	if len(s.rest) < len(word) || string(s.rest[:len(word)]) != word {
		return false
	}
	s.rest = s.rest[len(word):]
	return true
}

func (s *leafScan) word(word string) {
	if !s.has(word) {
		s.odd = true
	}
}

// text returns the text of a field. It may have no escapes.
func (s *leafScan) text(field string) []byte {
	s.word(field)
	return s.plain()
}

// optional returns the text of a field, or nothing if there is no such field.
func (s *leafScan) optional(field string) []byte {
	if !s.has(field) {
		return nil
	}
	return s.plain()
}

func (s *leafScan) plain() []byte {
	n := bytes.IndexByte(s.rest, '"')
	if n < 0 {
		s.odd = true
		return nil
	}
	text := s.rest[:n]
	s.rest = s.rest[n+1:]
	same, high := unescaped(text)
	s.odd = s.odd || !same || high && !utf8.Valid(text)
	return text
}

// unescaped reports whether a text without quotes means what it says, and whether it has bytes that are not ASCII.
func unescaped(text []byte) (same, high bool) {
	const each = 0x0101010101010101 // eight bytes at once
	var odd, all uint64
	for len(text) >= 8 {
		x := binary.LittleEndian.Uint64(text)
		slash := x ^ '\\'*each
		odd |= (x-' '*each)&^x | (slash-each)&^slash
		all |= x
		text = text[8:]
	}
	same = odd&(0x80*each) == 0
	for _, c := range text {
		same = same && c >= ' ' && c != '\\'
		all |= uint64(c)
	}
	return same, all&(0x80*each) != 0
}

// skip passes a field, if it comes next.
func (s *leafScan) skip(field string) {
	if s.has(field) {
		s.string()
	}
}

// string passes the rest of a text, of which the first quote was read.
func (s *leafScan) string() {
	if n := bytes.IndexByte(s.rest, '"'); n >= 0 {
		if same, _ := unescaped(s.rest[:n]); same {
			s.rest = s.rest[n+1:]
			return
		}
	}
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return
		case c == '\\' && i+1 < len(s.rest) && bytes.IndexByte([]byte(`"\/bfnrt`), s.rest[i+1]) >= 0:
			i++
		case c < ' ' || c == '\\':
			s.odd = true
			return
		}
	}
	s.odd = true
}

// count passes a field that is a number of up to 9 digits, if it comes next.
func (s *leafScan) count(field string) {
	if s.has(field) {
		n := s.digits()
		s.odd = s.odd || n > 9
	}
}

// digits passes the digits of a number without a sign, and returns how many there are.
func (s *leafScan) digits() int {
	n := 0
	for n < len(s.rest) && '0' <= s.rest[n] && s.rest[n] <= '9' {
		n++
	}
	s.odd = s.odd || n == 0 || n > 1 && s.rest[0] == '0'
	s.rest = s.rest[n:]
	return n
}

// value passes a value. Fractions, and numbers below zero, are odd.
func (s *leafScan) value(depth int) {
	switch {
	case s.odd || depth > scanDepth:
		s.odd = true
	case s.has(`"`):
		s.string()
	case s.has(`{`):
		s.list(depth, '}')
	case s.has(`[`):
		s.list(depth, ']')
	case s.has(`true`), s.has(`false`), s.has(`null`):
	default:
		s.digits()
	}
}

// list passes the rest of an object or array.
func (s *leafScan) list(depth int, end byte) {
	if s.has(string(end)) {
		return
	}
	for !s.odd {
		if end == '}' {
			s.word(`"`)
			s.string()
			s.word(`:`)
		}
		if s.value(depth + 1); s.has(string(end)) {
			return
		}
		s.word(`,`)
	}
}
