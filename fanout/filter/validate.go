package filter

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
)

// Limits bound a filter. A zero field is the default.
type Limits struct {
	Depth  int // of filters in filters; by default 8
	Tests  int // topics, types, attributes, members of data and tests in all; 100
	Values int // of lists of In and Nin in all; 256
	Length int // of one text or number, in bytes; 1,000
}

func (l Limits) orDefault() Limits {
	for field, usual := range map[*int]int{&l.Depth: 8, &l.Tests: 100, &l.Values: 256, &l.Length: 1000} {
		if *field == 0 {
			*field = usual
		}
	}
	return l
}

// unlimited are the limits of filters that somebody has accepted already.
func unlimited() Limits {
	return Limits{Depth: tooDeep, Tests: math.MaxInt, Values: math.MaxInt, Length: math.MaxInt}
}

// Validate returns all faults of a filter. Each is a FieldError that names its place in the filter;
// the error wraps ErrInvalid.
func (f *Filter) Validate(l Limits) error {
	c := checker{limits: l.orDefault()}
	c.filter(f, "", 1)
	if c.tests > c.limits.Tests {
		c.fault("", strconv.Itoa(c.tests), fmt.Sprintf("is the number of conditions, which must be %d at most: split the subscription", c.limits.Tests))
	}
	if c.values > c.limits.Values {
		c.fault("", strconv.Itoa(c.values), fmt.Sprintf("is the number of values in lists, which must be %d at most: split the subscription", c.limits.Values))
	}
	if len(c.faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", holdfast.ErrInvalid, errors.Join(c.faults...))
}

// maxFaults bounds what is said about a filter that is wrong all over.
const maxFaults = 10

type checker struct {
	limits        Limits
	tests, values int
	faults        []error
}

func (c *checker) fault(place, value, problem string) {
	if len(c.faults) < maxFaults {
		c.faults = append(c.faults, &holdfast.FieldError{Field: cmp.Or(place, "filter"), Value: clip(value), Problem: problem})
	}
}

func (c *checker) filter(f *Filter, place string, depth int) {
	if depth > c.limits.Depth {
		c.fault(place, "", fmt.Sprintf("is nested deeper than %d levels: write it flatter", c.limits.Depth))
		return
	}
	c.tests += len(f.Topics) + len(f.Types) + len(f.Attributes) + len(f.Data) + len(f.Where)
	c.names(f.Topics, join(place, "topics"), f.Topics != nil)
	c.names(f.Types, join(place, "types"), f.Types != nil)
	for i, t := range f.Types {
		if j := strings.IndexByte(t, '*'); t != "*" && j >= 0 && (j != len(t)-1 || !strings.HasSuffix(t, ".*")) {
			c.fault(element(place, "types", i), t, "has a * that is not its whole last part: write a type, a beginning such as order.*, or * alone")
		}
	}
	c.matches(f.Attributes, join(place, "attributes."))
	c.matches(f.Data, join(place, "data."))
	for i, t := range f.Where {
		c.test(t, element(place, "where", i))
	}
	c.filters(f.Any, place, "any", depth)
	c.filters(f.All, place, "all", depth)
	if f.Not != nil {
		c.filter(f.Not, join(place, "not"), depth+1)
	}
}

func (c *checker) filters(list []Filter, place, name string, depth int) {
	if list != nil && len(list) == 0 {
		c.fault(join(place, name), "", "is empty: write at least one filter, or leave it out")
	}
	if c.tests += len(list); c.tests > c.limits.Tests {
		return // Validate says so; what is too long is not walked
	}
	for i := range list {
		c.filter(&list[i], element(place, name, i), depth+1)
	}
}

func (c *checker) matches(wanted map[string]string, place string) {
	for name, value := range wanted {
		c.text(place+clip(name), name)
		c.text(place+clip(name), value)
	}
}

func (c *checker) names(list []string, place string, given bool) {
	if given && len(list) == 0 {
		c.fault(place, "", "is empty: write at least one name, or leave it out")
	}
	for i, s := range list {
		at := place + "[" + strconv.Itoa(i) + "]"
		if s == "" {
			c.fault(at, s, "is empty: write a name")
		}
		c.text(at, s)
	}
}

// text bounds a text.
func (c *checker) text(place, s string) {
	if len(s) > c.limits.Length {
		c.fault(place, s, fmt.Sprintf("has %d bytes, and may have %d: shorten it", len(s), c.limits.Length))
	}
	if !utf8.ValidString(s) {
		c.fault(place, strings.ToValidUTF8(s, "\uFFFD"), "is not valid UTF-8: write it anew")
	}
}

func (c *checker) test(t Test, place string) {
	c.text(join(place, "field"), t.Field)
	if problem := fieldProblem(t.Field); problem != "" {
		c.fault(join(place, "field"), t.Field, problem)
		return
	}
	if !slices.Contains(operators(), t.Op) {
		c.fault(join(place, "op"), string(t.Op), "is not known: write one of "+strings.Join(operatorNames(), ", "))
		return
	}
	values, list, ok := t.Value.tokens()
	place = join(place, "value")
	c.text(place, longest(values))
	switch {
	case !ok:
		c.fault(place, string(t.Value), "is not a JSON scalar or a list of them: write a text, a number, true, false or null")
	case t.Op == Exists:
		if t.Value != "" && t.Value != "true" && t.Value != "false" {
			c.fault(place, string(t.Value), "does not go with exists: write true or false, or leave it out")
		}
	case list != (t.Op == In || t.Op == Nin):
		c.fault(place, string(t.Value), "does not go with "+string(t.Op)+": in and nin take a list, the others one value")
	case list:
		c.values += len(values)
		c.list(t, place, values)
	case t.Value == "":
		c.fault(place, "", "is not set: write what "+string(t.Op)+" compares with")
	default:
		c.scalar(t, place, values[0])
	}
}

func (c *checker) list(t Test, place string, values []jsontext.Token) {
	if len(values) == 0 {
		c.fault(place, "", "is empty: write at least one value")
	}
	for i, v := range values {
		c.scalar(t, place+"["+strconv.Itoa(i)+"]", v)
		if strings.HasPrefix(t.Field, "attributes.") && v.Kind() != values[0].Kind() {
			c.fault(place, string(t.Value), "has values of several types: an attribute is read as one of them, so write texts or numbers")
		}
	}
}

// scalar checks that a value can be compared so, with that field.
func (c *checker) scalar(t Test, place string, v jsontext.Token) {
	kind := v.Kind()
	source, _ := fieldOf(t.Field)
	switch {
	case kind == jsontext.KindNumber && keyOf(kind, v.String()) == string(otherTag):
		c.fault(place, v.String(), fmt.Sprintf("has a power of ten beyond %d: write a smaller one", maxExponent/2))
	case (t.Op == Prefix || t.Op == Suffix || t.Op == Contains) && (kind != jsontext.KindString || source == ofTime):
		c.fault(place, v.String(), "does not go with "+string(t.Op)+": write a text, for a field that is one")
	case source == ofTime:
		if _, err := time.Parse(time.RFC3339Nano, v.String()); kind != jsontext.KindString || err != nil {
			c.fault(place, v.String(), "is not an instant: write it as 2026-01-31T09:00:00Z")
		}
	case source != ofData && kind != jsontext.KindString && (source != ofAttribute || kind != jsontext.KindNumber):
		c.fault(place, v.String(), "is never a value of this field, which is a text: write it in quotes")
	case kind != jsontext.KindString && kind != jsontext.KindNumber && slices.Contains([]Op{Gt, Gte, Lt, Lte}, t.Op):
		c.fault(place, v.String(), "has no order: write a number or a text")
	}
}

func longest(values []jsontext.Token) (s string) {
	for _, v := range values {
		if t := v.String(); len(t) > len(s) {
			s = t
		}
	}
	return s
}

func operators() []Op {
	return []Op{Eq, Neq, Gt, Gte, Lt, Lte, In, Nin, Prefix, Suffix, Contains, Exists}
}

func operatorNames() (names []string) {
	for _, op := range operators() {
		names = append(names, string(op))
	}
	return names
}

// fieldProblem says what is wrong with the name of a field.
func fieldProblem(s string) string {
	source, name := fieldOf(s)
	switch {
	case source == ofData:
		for i := 0; i < len(name); i++ {
			if name[i] == '\\' {
				if i++; i == len(name) || name[i] != '.' && name[i] != '\\' {
					return `has a \ that is followed by neither . nor \: write \\`
				}
			}
		}
		for more := true; more; {
			var part string
			if part, name, more = cutPath(name); part == "" {
				return "has an empty part: write data.NAME or data.NAME.NAME"
			}
		}
	case source == ofAttribute && name == "":
		return "names no attribute: write attributes.NAME"
	case source == noField:
		return "is no field: write topic, type, source, subject, time, attributes.NAME or data.PATH"
	}
	return ""
}

func join(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

func element(place, name string, i int) string {
	return join(place, name) + "[" + strconv.Itoa(i) + "]"
}
