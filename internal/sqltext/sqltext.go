// Package sqltext reads the statement of a database write as a person writes it, with named
// parameters, and replaces these by the placeholders of a driver. It knows only enough of each
// dialect to tell a parameter from a string, a name, a comment and a cast, and one statement from
// two. It does not know SQL: the database decides whether a statement is right.
package sqltext

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/internal/shown"
)

// Dialect is how a database reads SQL.
type Dialect string

// The dialects. MariaDB uses MySQL's.
const (
	SQLite     Dialect = "sqlite"
	PostgreSQL Dialect = "postgres"
	MySQL      Dialect = "mysql"
	SQLServer  Dialect = "sqlserver"
)

// Dialects returns all dialects.
func Dialects() []Dialect { return []Dialect{SQLite, PostgreSQL, MySQL, SQLServer} }

// Own returns the parameters that the message itself fills. No others begin with an underscore.
func Own() []string {
	return []string{"_id", "_source", "_destination", "_endpoint", "_kind", "_correlation_id", "_ordering_key", "_payload"}
}

// A Statement is a statement for a driver.
type Statement struct {
	Verb  string // its first word, in lower case
	Text  string
	Names []string // of the parameters, one for each placeholder, in order: "order.id"
	Types []Type   // of the parameters, in the same order
}

// Untyped returns the parameters that a payload fills and that have no type, each once.
func (s Statement) Untyped() []string {
	var list []string
	for i, name := range s.Names {
		if s.Types[i].Name == "" && name[0] != '_' && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// Parse reads one statement. A parameter is a colon and a name, or several names joined by dots. A
// name is a letter or underscore, then letters, digits and underscores. A parameter has the type
// that types gives for its name; those of the message itself are text. An error says what to write
// instead, without quoting the surrounding text.
func Parse(d Dialect, text string, types map[string]Type) (Statement, error) {
	if !slices.Contains(Dialects(), d) {
		return Statement{}, fmt.Errorf("read SQL: no dialect %q", string(d))
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return Statement{}, errors.New("is not UTF-8, or holds a byte 0")
	}
	s := scanner{d: d, in: text, given: types}
	for s.pos < len(s.in) {
		if err := s.step(); err != nil {
			return Statement{}, err
		}
	}
	if s.first == "" {
		return Statement{}, errors.New("has no statement in it")
	}
	for _, name := range s.names {
		if name[0] == '_' && !slices.Contains(Own(), name) {
			return Statement{}, fmt.Errorf("has the parameter :%s; with an underscore begin only :%s", name, strings.Join(Own(), ", :"))
		}
	}
	if !slices.Contains(d.writes(), s.first) {
		return Statement{}, fmt.Errorf("begins with %q; a write begins with one of %s: each has a transaction of its own, and leaves nothing on its connection",
			shown.Line(strings.ToUpper(s.first), 40), strings.ToUpper(strings.Join(d.writes(), ", ")))
	}
	return Statement{Verb: s.first, Text: s.out.String(), Names: s.names, Types: s.types}, nil
}

// writes returns the words with which a write may begin, in lower case. Any other word might end
// our transaction, outlive it on the connection, take a lock that stays, or speak a protocol of its
// own.
func (d Dialect) writes() []string {
	all := []string{"insert", "update", "delete", "with", "select"} // select: for functions that write
	switch d {
	case PostgreSQL:
		return append(all, "merge", "call")
	case MySQL:
		return append(all, "replace", "call", "do")
	case SQLServer:
		return append(all, "merge", "exec", "execute")
	case SQLite:
		return append(all, "replace")
	}
	return nil
}

type scanner struct {
	d     Dialect
	in    string
	pos   int
	out   strings.Builder
	given map[string]Type
	names []string
	types []Type
	first string // the first word, in lower case
	ended bool   // a semicolon was read
}

// step reads the element at pos.
func (s *scanner) step() error {
	rest := s.in[s.pos:]
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case unicode.IsSpace(r):
		s.take(size)
		return nil
	case s.d == MySQL && (strings.HasPrefix(rest, "/*!") || strings.HasPrefix(rest, "/*M!")):
		return errors.New("has a comment with ! that is run: write its content without it")
	case s.comment(rest) > 0:
		s.take(s.comment(rest))
		return nil
	case strings.HasPrefix(rest, "/*"):
		return errors.New("has a comment that does not end")
	case r == ';':
		s.ended = true
		s.take(size)
		return nil
	case s.ended:
		return errors.New("has a second statement: write one, or call a procedure")
	}
	if s.first == "" && (!isStart(r) && r != '(') {
		s.first = string(r)
	}
	if size, what := s.quoted(rest, ""); what != "" {
		return s.takeQuoted(size, what)
	}
	switch {
	case isStart(r):
		return s.word(rest)
	case r == ':':
		return s.colon(rest)
	}
	if err := s.placeholder(rest); err != nil {
		return err
	}
	n := size
	for unicode.IsDigit(r) && n < len(rest) { // digits and what follows them: 1e5 is not a word
		next, size := utf8.DecodeRuneInString(rest[n:])
		if !isPart(next) {
			break
		}
		n += size
	}
	s.take(n)
	return nil
}

func (s *scanner) take(n int) {
	s.out.WriteString(s.in[s.pos : s.pos+n])
	s.pos += n
}

func (s *scanner) takeQuoted(size int, what string) error {
	if size == 0 {
		return fmt.Errorf("has %s that does not end", what)
	}
	s.take(size)
	return nil
}

// word reads a name or keyword, and a string of which it is the prefix.
func (s *scanner) word(rest string) error {
	n := 0
	for n < len(rest) {
		r, size := utf8.DecodeRuneInString(rest[n:])
		// A $ within a name does not begin a PostgreSQL string.
		if !isPart(r) && r != '$' && (r != '#' && r != '@' || s.d != SQLServer) {
			break
		}
		n += size
	}
	if s.first == "" {
		s.first = strings.ToLower(rest[:n])
	}
	prefix := rest[:n]
	s.take(n)
	if size, what := s.quoted(rest[n:], prefix); what != "" {
		return s.takeQuoted(size, what)
	}
	return nil
}

// colon reads a parameter, or another use of a colon: casts, assignments, slices of arrays.
func (s *scanner) colon(rest string) error {
	if strings.HasPrefix(rest, "::") || strings.HasPrefix(rest, ":=") {
		s.take(2)
		return nil
	}
	name := nameAt(rest[1:])
	if name == "" {
		s.take(1)
		return nil
	}
	t := s.given[name]
	if name[0] == '_' && s.d != PostgreSQL { // PostgreSQL knows its types
		t = Type{Name: Text}
	}
	s.names, s.types = append(s.names, name), append(s.types, t)
	s.pos += 1 + len(name)
	placeholder := "?"
	switch s.d {
	case PostgreSQL:
		placeholder = "$" + strconv.Itoa(len(s.names))
	case SQLServer:
		placeholder = "@p" + strconv.Itoa(len(s.names))
	case SQLite, MySQL:
	}
	s.out.WriteString(s.d.cast(placeholder, t))
	return nil
}

// nameAt returns the name at the start of text, or an empty string.
func nameAt(text string) string {
	n := 0
	for {
		end := n
		for end < len(text) {
			r, size := utf8.DecodeRuneInString(text[end:])
			if end == n && !isStart(r) || !isPart(r) {
				break
			}
			end += size
		}
		if end == n {
			return strings.TrimSuffix(text[:n], ".")
		}
		if n = end; n == len(text) || text[n] != '.' {
			return text[:n]
		}
		n++
	}
}

func isStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isPart(r rune) bool { return isStart(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// placeholder refuses a driver's own placeholders: they would take the values of ours.
func (s *scanner) placeholder(rest string) error {
	next := byte(' ')
	if len(rest) > 1 {
		next = rest[1]
	}
	digit := next >= '0' && next <= '9'
	switch {
	case rest[0] == '?' && (s.d == SQLite || s.d == MySQL),
		rest[0] == '$' && (s.d == SQLite || s.d == PostgreSQL && digit),
		rest[0] == '@' && s.d == SQLite:
		return fmt.Errorf("has the placeholder %c: write a name, such as :amount", rest[0])
	case rest[0] == '@' && s.d == SQLServer && (next == 'p' || next == 'P') && len(rest) > 2 && rest[2] >= '0' && rest[2] <= '9':
		return errors.New("has a variable such as @p1, which is what placeholders become: give it another name")
	}
	return nil
}
