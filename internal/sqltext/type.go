package sqltext

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Type is the type of a parameter as a configuration writes it: text, integer, decimal(20,6),
// timestamp(3). The zero Type means none.
type Type struct {
	Name      string
	Precision int // of a decimal: number of all digits
	Scale     int // of a decimal: digits after the point; of a time: digits of the second
}

// String returns the type as a configuration writes it.
func (t Type) String() string {
	switch {
	case t.Name == Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case t.Scale > 0:
		return fmt.Sprintf("%s(%d)", t.Name, t.Scale)
	}
	return t.Name
}

// The names of types.
const (
	Text      = "text"
	Integer   = "integer"
	Decimal   = "decimal"
	Double    = "double"
	Real      = "real"
	Boolean   = "boolean"
	Date      = "date"
	Time      = "time"
	Timestamp = "timestamp"
	JSON      = "json"
	Bytes     = "bytes"  // the bytes of a text in UTF-8
	Base64    = "base64" // the bytes that a text encodes
)

// Types returns the types of a dialect, as a configuration writes them.
func (d Dialect) Types() []string {
	all := []string{Text, Integer, "decimal(20,6)", Double, Boolean, JSON, Bytes, Base64}
	if d == SQLite { // SQLite has no times, and one kind of fraction
		return all
	}
	return slices.Insert(all, 4, Real, Date, "time(0)", "timestamp(0)")
}

// digits returns the most digits of a decimal, and the most after its point.
func (d Dialect) digits() (all, behind int) {
	switch d {
	case SQLite:
		return 15, 15 // it computes with binary fractions, which keep that many
	case MySQL:
		return 65, 30
	case PostgreSQL:
		return 1000, 1000
	case SQLServer:
	}
	return 38, 38
}

var typeForm = regexp.MustCompile(`^([a-z0-9]+)(?:\((\d{1,4})(?:, ?(\d{1,4}))?\))?$`)

// ParseType reads a type. An error says what to write instead.
func ParseType(d Dialect, text string) (Type, error) {
	wrong := fmt.Errorf("is no type of a parameter: write one of %s; in braces, put one with a comma in quotes", strings.Join(d.Types(), ", "))
	parts := typeForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if parts == nil {
		return Type{}, wrong
	}
	t := Type{Name: parts[1]}
	if !slices.ContainsFunc(d.Types(), func(known string) bool { name, _, _ := strings.Cut(known, "("); return name == t.Name }) {
		return Type{}, wrong
	}
	first, _ := strconv.Atoi(parts[2])
	second, _ := strconv.Atoi(parts[3])
	switch {
	case t.Name == Decimal:
		all, behind := d.digits()
		if t.Precision, t.Scale = first, second; first < 1 || first > all || second > min(first, behind) {
			return Type{}, fmt.Errorf("must be decimal(digits,digits behind the point), with 1 to %d digits, of which at most %d are behind the point", all, behind)
		}
	case t.Name == Time || t.Name == Timestamp:
		if t.Scale = first; first > 6 || parts[3] != "" {
			return Type{}, fmt.Errorf("must be %s(digits of a second), with 0 to 6 digits", t.Name)
		}
	case parts[2] != "":
		return Type{}, wrong
	}
	return t, nil
}

// cast wraps a placeholder in a cast, for a type that no driver binds: the value would be a text,
// and be computed with as a binary fraction.
func (d Dialect) cast(placeholder string, t Type) string {
	as := ""
	switch {
	case d != MySQL && d != SQLServer:
	case t.Name == Decimal, t.Name == Date:
		as = t.String()
	case t.Name == Time:
		as = fmt.Sprintf("time(%d)", t.Scale)
	case t.Name == Timestamp && d == MySQL:
		as = fmt.Sprintf("datetime(%d)", t.Scale)
	case t.Name == Timestamp:
		as = fmt.Sprintf("datetime2(%d)", t.Scale)
	}
	if as == "" {
		return placeholder
	}
	return "cast(" + placeholder + " as " + as + ")"
}
