package rows

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Table describes the rows of one table.
type Table struct {
	Name    string
	Columns []Column // key columns first
	Key     []Column
	Of      []string // tables that have the row to which this one belongs, with the same number; nil: none
	Book    bool     // people have set the rows; there are few, and a salvage reads them first
	Fixed   bool     // the rows never change
	Split   bool     // spread over several tables of a store, which reads and writes it with code of its own

	made   reflect.Type
	beside int  // index of the column with the number of the bundle; zero: none
	parent bool // the key is the number of a bundle
}

// Column is one column of a table.
type Column struct {
	Name   string
	Null   bool   // a zero value is NULL
	Grows  bool   // a row that replaces another must have a higher value
	Secret bool   // the SHA-256 of a secret: 32 bytes
	Exact  bool   // the text must not be changed
	Field  string // name of the struct's field, for people
	Fixed  bool   // the row never changes: another one with its key and the same value here replaces nothing
	Newer  bool   // a row replaces another only if it is higher here; the first such column that differs decides
	Stays  bool   // a row that replaces another keeps the other's value
	Final  int64  // a row with this value is not replaced; zero: every row may be

	field int
}

// New returns an empty row.
func (t *Table) New() Row { return reflect.New(t.made).Interface().(Row) } //nolint:forcetypeassert // of it the table is made

// Fields returns pointers to the fields of a row, one for each column: *string, *[]byte, *int64,
// *bool, *Instant or *holdfast.ID, and in a split table *holdfast.State.
func (t *Table) Fields(r Row) []any { return fields(r, t.Columns) }

// Field returns the pointer to field i; see Fields.
func (t *Table) Field(r Row, i int) any { return fields(r, t.Columns[i:i+1])[0] }

// Clone returns a row with the same fields.
func (t *Table) Clone(r Row) Row {
	c := t.New()
	reflect.ValueOf(c).Elem().Set(reflect.ValueOf(r).Elem())
	return c
}

// KeyFields returns the pointers to the fields of the key; see Fields.
func (t *Table) KeyFields(r Row) []any { return fields(r, t.Key) }

func fields(r Row, columns []Column) []any {
	v := reflect.ValueOf(r).Elem()
	list := make([]any, len(columns))
	for i := range columns {
		list[i] = v.Field(columns[i].field).Addr().Interface()
	}
	return list
}

// Final reports whether a row must not be replaced.
func (t *Table) Final(r Row) bool {
	for i, f := range t.Fields(r) {
		if n, ok := f.(*int64); ok && t.Columns[i].Final != 0 && *n == t.Columns[i].Final {
			return true
		}
	}
	return false
}

// Place returns the key of a row as a text. Two rows have the same Place if one replaces the other.
func (t *Table) Place(r Row) string {
	var b strings.Builder
	for i, f := range t.KeyFields(r) {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch f := f.(type) {
		case *int64:
			b.WriteString(strconv.FormatInt(*f, 10))
		case *string:
			b.WriteString(strconv.QuoteToASCII(*f))
		}
	}
	return b.String()
}

// At returns a row with the key of a Place, and otherwise empty.
func (t *Table) At(place string) (Row, error) {
	r, rest := t.New(), place
	for _, f := range t.KeyFields(r) {
		var err error
		rest = strings.TrimPrefix(rest, " ")
		switch f := f.(type) {
		case *int64:
			word, _, _ := strings.Cut(rest, " ")
			*f, err = strconv.ParseInt(word, 10, 64)
			rest = rest[len(word):]
		case *string:
			var word string
			if word, err = strconv.QuotedPrefix(rest); err == nil {
				*f, err = strconv.Unquote(word)
				rest = rest[len(word):]
			}
		}
		if err != nil {
			return nil, fmt.Errorf("place %q in %s: %w", place, t.Name, err)
		}
	}
	return r, nil
}

// Beside returns a copy of the row with the number of the message that it stands beside and the
// number of the message's bundle.
func Beside(r Row, message, bundle int64) Row {
	t := Of(r)
	r = t.Clone(r)
	*t.Field(r, 0).(*int64) = message       //nolint:forcetypeassert // CheckBeside
	*t.Field(r, t.beside).(*int64) = bundle //nolint:forcetypeassert // CheckBeside
	return r
}

// CheckBeside returns ErrNotBeside unless every row can stand beside a message of a bundle.
func CheckBeside(list ...Row) error {
	for _, r := range list {
		if t := Of(r); t == nil || reflect.ValueOf(r).IsNil() || t.beside == 0 {
			return fmt.Errorf("%w: %T", ErrNotBeside, r)
		}
	}
	return nil
}

// Parent returns a copy of the row with the number of the bundle that it stands beside.
func Parent(r Row, bundle int64) Row {
	t := Of(r)
	r = t.Clone(r)
	*t.Field(r, 0).(*int64) = bundle //nolint:forcetypeassert // CheckParent
	return r
}

// CheckParent returns ErrNotBeside unless the row can stand beside a bundle. Nil can.
func CheckParent(r Row) error {
	if r == nil {
		return nil
	}
	if t := Of(r); t == nil || reflect.ValueOf(r).IsNil() || !t.parent {
		return fmt.Errorf("%w: %T", ErrNotBeside, r)
	}
	return nil
}

// Tables lists the tables in the order in which they are copied: a row comes after the row to which
// it belongs.
func Tables() []*Table { return registered().list }

// Plain lists the tables of Tables that are not split.
func Plain() []*Table { return registered().plain }

// ErrNotPlain means that a row is not of a plain table of this package: no store can put it.
var ErrNotPlain = errors.New("not a row of a plain table of package rows")

// ErrNotBeside means that a row is of a table whose rows do not stand beside a bundle, or beside its
// messages.
var ErrNotBeside = errors.New("not a row of a table whose rows stand there beside a bundle")

// CheckPlain returns ErrNotPlain unless every row is of a table that Plain lists.
func CheckPlain(list ...Row) error {
	for _, r := range list {
		if t := Of(r); t == nil || t.Split || reflect.ValueOf(r).IsNil() {
			return fmt.Errorf("%w: %T", ErrNotPlain, r)
		}
	}
	return nil
}

// Of returns the table of a row, or nil if its type is not of this package.
func Of(r Row) *Table { return registered().byType[reflect.TypeOf(r)] }

type registry struct {
	list   []*Table
	plain  []*Table
	byType map[reflect.Type]*Table
}

var registered = sync.OnceValue(func() (all registry) { //nolint:gochecknoglobals // made once, of the types below
	all.byType = map[reflect.Type]*Table{}
	for _, r := range list() {
		t := describe(r)
		all.list, all.byType[reflect.TypeOf(r)] = append(all.list, t), t
		if !t.Split {
			all.plain = append(all.plain, t)
		}
	}
	return all
})

// describe reads the tags of a row's struct. TestTables finds faults in them.
func describe(r Row) *Table {
	made := reflect.TypeOf(r).Elem()
	t := &Table{Name: r.Table(), made: made}
	for i := range made.NumField() {
		words := strings.Split(made.Field(i).Tag.Get("row"), ",")
		if words[0] == "-" {
			continue
		}
		c := Column{Name: words[0], Field: made.Field(i).Name, field: i}
		key := false
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			switch name {
			case "key":
				key = true
			case "split":
				t.Split = true
			case "book":
				t.Book = true
			case "secret":
				c.Secret = true
			case "null":
				c.Null = true
			case "grows":
				c.Grows = true
			case "exact":
				c.Exact = true
			case "fixed":
				c.Fixed, t.Fixed = true, true
			case "newer":
				c.Newer = true
			case "stays":
				c.Stays = true
			case "final":
				c.Final, _ = strconv.ParseInt(value, 10, 64)
			case "beside":
				t.beside = len(t.Columns)
			case "parent":
				t.parent = true
			case "of":
				t.Of = strings.Split(value, "|")
			}
		}
		t.Columns = append(t.Columns, c)
		if key {
			t.Key = append(t.Key, c)
		}
	}
	return t
}

// Range selects rows of a table, in the order of their keys.
type Range struct {
	Table *Table
	Base  int64  // the instant from which Instants are distances
	After string // Place of the row before the first; empty: none
	Limit int64  // of rows; zero: all
	Bytes int64  // of contents; the last row may exceed it; zero: no limit
}

// Behind returns the number of the row before the first, for a table whose key is a number.
func (w *Range) Behind() (seq int64, err error) {
	if w.After != "" {
		seq, err = strconv.ParseInt(w.After, 10, 64)
	}
	return seq, err
}

// Size returns about how many bytes a row holds.
func (t *Table) Size(r Row) (n int) {
	for _, f := range t.Fields(r) {
		switch f := f.(type) {
		case *string:
			n += len(*f)
		case *[]byte:
			n += len(*f)
		}
	}
	return n
}
