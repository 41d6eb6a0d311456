package sqltext

import (
	"strings"
	"unicode/utf8"
)

// comment returns the length of the comment at the start of rest. 0: there is none, or it does not
// end.
func (s *scanner) comment(rest string) int {
	line := strings.HasPrefix(rest, "--")
	if s.d == MySQL {
		// In MySQL 1--1 is a sum: a comment has white space after its dashes.
		line = line && (len(rest) == 2 || rest[2] <= ' ') || rest[0] == '#'
	}
	if line {
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return end + 1
		}
		return len(rest)
	}
	if !strings.HasPrefix(rest, "/*") {
		return 0
	}
	depth := 0
	for i := 0; i+1 < len(rest); i++ {
		switch rest[i : i+2] {
		case "/*":
			if depth == 0 || s.d == PostgreSQL || s.d == SQLServer { // these nest comments
				depth++
			}
			i++
		case "*/":
			i++
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// quoted returns the length and kind of the string or quoted name at the start of rest. what is ""
// if there is none. The length is 0 if it does not end. prefix is the word right before it.
func (s *scanner) quoted(rest, prefix string) (size int, what string) {
	if rest == "" {
		return 0, ""
	}
	backslash := s.d == MySQL || s.d == PostgreSQL && strings.EqualFold(prefix, "e")
	switch c := rest[0]; {
	case c == '\'':
		return closing(rest, c, backslash), "a string"
	case c == '"':
		return closing(rest, c, s.d == MySQL), "a quoted name"
	case c == '`' && (s.d == MySQL || s.d == SQLite):
		return closing(rest, c, false), "a quoted name"
	case c == '[' && s.d == SQLServer:
		return closing(rest, ']', false), "a quoted name"
	case c == '[' && s.d == SQLite: // which knows no ] in such a name
		return strings.IndexByte(rest, ']') + 1, "a quoted name"
	case c == '$' && s.d == PostgreSQL:
		return dollar(rest)
	}
	return 0, ""
}

// closing is the length up to the quote that is neither doubled nor escaped.
func closing(rest string, quote byte, backslash bool) int {
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && backslash:
			i++
		case rest[i] != quote:
		case i+1 < len(rest) && rest[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return 0
}

// dollar reads $$…$$ and $tag$…$tag$.
func dollar(rest string) (size int, what string) {
	n := 1
	for n < len(rest) && rest[n] != '$' {
		r, size := utf8.DecodeRuneInString(rest[n:])
		if !isPart(r) || n == 1 && !isStart(r) {
			return 0, ""
		}
		n += size
	}
	if n == len(rest) {
		return 0, ""
	}
	tag := rest[:n+1]
	end := strings.Index(rest[n+1:], tag)
	if end < 0 {
		return 0, "a string"
	}
	return n + 1 + end + len(tag), "a string"
}
