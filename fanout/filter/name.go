package filter

import (
	"strings"
)

// Key returns the form by which the names of attributes are compared in Filter.Attributes, as Open
// Notificaties does: camel case and snake case are one, so that object_type is objectType. The Key of a Key is
// that Key. There Open Notificaties differs: to it a_b_c is aBC, and aBC is aBc.
func Key(name string) string {
	for strings.ContainsAny(name, "_ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		next := camel(snake(name))
		if next == name {
			break
		}
		name = next // a round leaves fewer capitals and underscores; few names need a third one
	}
	return name
}

// snake begins a part before a capital that follows a small letter or a digit, and before the last
// of several capitals if a small letter follows it.
func snake(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if isUpper(c) && i > 0 {
			before := name[i-1]
			last := i+1 < len(name) && isLower(name[i+1])
			if isLower(before) || isDigit(before) || isUpper(before) && last {
				b.WriteByte('_')
			}
		}
		if isUpper(c) {
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// camel drops each _ before a letter or digit, which becomes a capital unless it is the first.
func camel(name string) string {
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c, lines := name[i], i
		for lines < len(name) && name[lines] == '_' {
			lines++
		}
		switch {
		case lines == i:
			b = append(b, c)
			continue
		case lines == len(name) || !isLower(name[lines]) && !isDigit(name[lines]):
			b, i = append(b, name[i:lines]...), lines-1
			continue
		}
		i = lines
		if c = name[i]; isLower(c) && len(b) > 0 {
			c -= 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
