package filter

import (
	"strings"
)

// Key returns the form by which the names of attributes are compared in Filter.Attributes, as Open
// Notificaties does: camel case and snake case are one, so that object_type is objectType.
func Key(name string) string {
	if !strings.ContainsAny(name, "_ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		return name
	}
	return camel(snake(name))
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

// camel drops each single _ before a letter or digit, which becomes a capital unless it is the first.
func camel(name string) string {
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c != '_' || i+1 == len(name) || !isLower(name[i+1]) && !isDigit(name[i+1]) {
			b = append(b, c)
			continue
		}
		i++
		if c = name[i]; isLower(c) && i > 1 {
			c -= 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
