package filter_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-mq/holdfast/fanout/filter"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// The model is the meaning of a filter in the plainest words. It shares no code with the package.

func meets(f filter.Filter, e *filter.Event) bool {
	if f.Topics != nil && !slices.Contains(f.Topics, e.Topic) {
		return false
	}
	if f.Types != nil && !slices.ContainsFunc(f.Types, func(p string) bool {
		open, isOpen := strings.CutSuffix(p, "*")
		return p == "*" || p == e.Type || isOpen && strings.HasPrefix(e.Type, open)
	}) {
		return false
	}
	for name, want := range f.Attributes {
		if got, ok := e.Attributes[name]; ok && want != "*" && got != want {
			return false
		}
	}
	var members map[string]any
	if len(f.Data) > 0 {
		_ = json.Unmarshal(e.Data, &members)
	}
	for name, want := range f.Data {
		if got, ok := members[name]; ok && want != "*" && got != any(want) {
			return false
		}
	}
	for _, t := range f.Where {
		if !passes(t, e) {
			return false
		}
	}
	if f.Any != nil && !slices.ContainsFunc(f.Any, func(one filter.Filter) bool { return meets(one, e) }) {
		return false
	}
	for _, one := range f.All {
		if !meets(one, e) {
			return false
		}
	}
	return f.Not == nil || !meets(*f.Not, e)
}

// see returns the value of a field: nil for null, a bool, a string, a *big.Rat, a time.Time, or a
// collection.
func see(e *filter.Event, field string, asNumber bool) (any, bool) {
	switch field {
	case "topic":
		return e.Topic, e.Topic != ""
	case "type":
		return e.Type, e.Type != ""
	case "source":
		return e.Source, e.Source != ""
	case "subject":
		return e.Subject, e.Subject != ""
	case "time":
		return e.Time, !e.Time.IsZero()
	}
	if name, ok := strings.CutPrefix(field, "attributes."); ok {
		s, ok := e.Attributes[name]
		if !asNumber {
			return s, ok
		}
		if !json.Valid([]byte(s)) || strings.ContainsAny(s, ` "[{ntf`) {
			return nil, false
		}
		r, ok := new(big.Rat).SetString(s)
		return r, ok
	}
	var v any
	d := json.NewDecoder(strings.NewReader(string(e.Data)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil, false
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(field, "data."), ".") {
		switch in := v.(type) {
		case map[string]any:
			if v, ok := in[name]; !ok {
				return v, false
			}
			v = in[name]
		case []any:
			var i int
			if _, err := fmt.Sscanf(name, "%d", &i); err != nil || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return plain(v), true
}

func plain(v any) any {
	if n, ok := v.(json.Number); ok {
		r, _ := new(big.Rat).SetString(n.String())
		return r
	}
	return v
}

func passes(t filter.Test, e *filter.Event) bool {
	var want any
	d := json.NewDecoder(strings.NewReader(string(t.Value)))
	d.UseNumber()
	_ = d.Decode(&want)
	want = plain(want)
	list, _ := want.([]any)
	first := want
	if list != nil {
		first = plain(list[0])
	}
	_, number := first.(*big.Rat)
	got, there := see(e, t.Field, number)
	typed := func(v any) any {
		if s, ok := v.(string); ok && t.Field == "time" {
			v, _ = time.Parse(time.RFC3339Nano, s)
		}
		return plain(v)
	}
	order, ordered := compare(got, typed(want))
	ordered = ordered && there
	text, _ := got.(string)
	part, isText := want.(string)
	_, gotText := got.(string)
	isText = isText && there && gotText
	among := there && slices.ContainsFunc(list, func(one any) bool { o, ok := compare(got, typed(one)); return ok && o == 0 })
	switch t.Op {
	case filter.Eq:
		return ordered && order == 0
	case filter.Neq:
		return !ordered || order != 0
	case filter.Gt:
		return ordered && order > 0
	case filter.Gte:
		return ordered && order >= 0
	case filter.Lt:
		return ordered && order < 0
	case filter.Lte:
		return ordered && order <= 0
	case filter.In:
		return among
	case filter.Nin:
		return !among
	case filter.Prefix:
		return isText && strings.HasPrefix(text, part)
	case filter.Suffix:
		return isText && strings.HasSuffix(text, part)
	case filter.Contains:
		return isText && strings.Contains(text, part)
	case filter.Exists:
		return there == (t.Value != "false")
	}
	panic(t.Op)
}

// compare returns the order of two values of one type.
func compare(a, b any) (int, bool) {
	switch a := a.(type) {
	case nil:
		return 0, b == nil
	case bool:
		other, ok := b.(bool)
		if a == other {
			return 0, ok
		}
		return 1, ok
	case string:
		other, ok := b.(string)
		return strings.Compare(a, other), ok
	case *big.Rat:
		other, ok := b.(*big.Rat)
		if !ok {
			return 0, false
		}
		return a.Cmp(other), true
	case time.Time:
		other, ok := b.(time.Time)
		return a.Compare(other), ok
	}
	return 0, false
}

// Few names and values, so that filters and events meet.
var (
	texts   = []string{"", "a", "ab", "abc", "b", "ba", "cab", "1", "10", "-2.5", "é", "é\x7f"}
	numbers = []string{"0", "-0", "1", "1.0", "10e-1", "-1", "-1.5", "-2.5", "10", "1e1", "9223372036854775807", "9223372036854775808", "0.1", "0.10000000000000000000000000000000000001", "-0.001", "1e-3"}
	others  = []string{"null", "true", "false", "[]", "{}", `[1,{"x":"a"}]`, `{"x":1}`}
	instant = []string{"2026-01-31T09:00:00Z", "2026-01-31T10:00:00+01:00", "2026-01-31T09:00:00.000000001Z", "1969-01-01T00:00:00Z"}
)

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }

func drawTest(t *rapid.T) filter.Test {
	field := rapid.SampledFrom([]string{"topic", "type", "source", "subject", "time", "attributes.a", "attributes.b", "data.a", "data.b", "data.b.x", "data.b.1.x"}).Draw(t, "field")
	op := rapid.SampledFrom([]filter.Op{filter.Eq, filter.Neq, filter.Gt, filter.Gte, filter.Lt, filter.Lte, filter.In, filter.Nin, filter.Prefix, filter.Suffix, filter.Contains, filter.Exists}).Draw(t, "op")
	isNumber := rapid.Bool().Draw(t, "number")
	value := func() string {
		switch {
		case field == "time":
			return quoted(rapid.SampledFrom(instant).Draw(t, "time"))
		case op == filter.Prefix, op == filter.Suffix, op == filter.Contains, !strings.Contains(field, "."), !isNumber:
			return quoted(rapid.SampledFrom(texts).Draw(t, "text"))
		case strings.HasPrefix(field, "data") && (op == filter.Eq || op == filter.Neq || op == filter.In || op == filter.Nin) && rapid.Bool().Draw(t, "other"):
			return rapid.SampledFrom(others[:3]).Draw(t, "other value")
		}
		return rapid.SampledFrom(numbers).Draw(t, "number")
	}
	test := filter.Test{Field: field, Op: op}
	test.Value = filter.Value(value())
	if op == filter.Exists {
		test.Value = rapid.SampledFrom([]filter.Value{"", "true", "false"}).Draw(t, "exists")
	}
	if op == filter.In || op == filter.Nin {
		list := []string{string(test.Value)}
		for range rapid.IntRange(0, 2).Draw(t, "values") {
			list = append(list, value())
		}
		test.Value = filter.Value("[" + strings.Join(list, ",") + "]")
	}
	if field == "time" && (op == filter.Prefix || op == filter.Suffix || op == filter.Contains) {
		test.Op = filter.Eq
	}
	return test
}

func drawFilter(t *rapid.T, depth int) (f filter.Filter) {
	some := func(n int) int { return rapid.SampledFrom([]int{0, 0, 0, 1, n}).Draw(t, "some") }
	for range some(2) {
		f.Topics = append(f.Topics, rapid.SampledFrom(texts[1:4]).Draw(t, "topic"))
	}
	for range some(2) {
		f.Types = append(f.Types, rapid.SampledFrom([]string{"*", "a", "a.*", "a.b", "a.b.*"}).Draw(t, "type"))
	}
	for range some(2) {
		if f.Attributes == nil {
			f.Attributes = map[string]string{}
		}
		f.Attributes[rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")] = rapid.SampledFrom(append(texts, "*")).Draw(t, "value")
	}
	for range some(2) {
		if f.Data == nil {
			f.Data = map[string]string{}
		}
		f.Data[rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "member")] = rapid.SampledFrom(append(texts, "*")).Draw(t, "value")
	}
	for range rapid.IntRange(0, 2).Draw(t, "tests") {
		f.Where = append(f.Where, drawTest(t))
	}
	if depth > 0 {
		for range some(3) {
			f.Any = append(f.Any, drawFilter(t, depth-1))
		}
		for range some(2) {
			f.All = append(f.All, drawFilter(t, depth-1))
		}
		for range some(1) {
			inner := drawFilter(t, depth-1)
			f.Not = &inner
		}
	}
	return f
}

func drawEvent(t *rapid.T) *filter.Event {
	text := func(label string) string { return rapid.SampledFrom(texts).Draw(t, label) }
	e := &filter.Event{
		Topic: rapid.SampledFrom(texts[1:4]).Draw(t, "topic"), Type: rapid.SampledFrom([]string{"", "a", "a.b", "a.b.c", "ab"}).Draw(t, "type"),
		Source: text("source"), Subject: text("subject"), Attributes: map[string]string{},
	}
	if rapid.Bool().Draw(t, "timed") {
		e.Time, _ = time.Parse(time.RFC3339Nano, rapid.SampledFrom(instant).Draw(t, "time"))
	}
	for _, name := range []string{"a", "b"} {
		if rapid.Bool().Draw(t, "has") {
			e.Attributes[name] = text("attribute")
		}
	}
	var members []string
	for _, name := range []string{"a", "b"} {
		sort := rapid.SampledFrom([][]string{nil, numbers, others, {quoted("a"), quoted("ab"), quoted("cab"), quoted("1")}}).Draw(t, "sort")
		if sort != nil {
			members = append(members, quoted(name)+":"+rapid.SampledFrom(sort).Draw(t, "value"))
		}
	}
	for i := range rapid.SampledFrom([]int{0, 0, 40}).Draw(t, "more") {
		members = append(members, fmt.Sprintf(`"m%d":%d`, i, i))
	}
	e.Data = []byte("{" + strings.Join(members, ",") + "}")
	if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
		e.Data = e.Data[1:]
	}
	return e
}

// The index, the explanation and the model are of one opinion about random filters and events,
// while subscriptions come, change and go.
func TestIndexExplainAndModelAgree(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one goroutine")
	rapid.Check(t, func(t *rapid.T) {
		var x filter.Index
		want := map[string]filter.Filter{}
		topics := map[string][]string{}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "id"))
			if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				x.Remove(id)
				delete(want, id)
			} else {
				want[id], topics[id] = drawFilter(t, 2), rapid.SampledFrom([][]string{{"*"}, {"*"}, {"a"}, {"ab", "a"}, {}}).Draw(t, "topics")
				if err := x.Set(id, topics[id], want[id]); err != nil {
					t.Fatalf("%+v: %v", want[id], err)
				}
			}
			if step%8 != 0 {
				continue
			}
			e := drawEvent(t)
			var ids []string
			for id, f := range want {
				meets := meets(f, e)
				if got := filter.Explain(f, e); got.Matched != meets || got.Matched != (len(got.Reasons) == 0) {
					t.Fatalf("%+v: explained %+v, want %t for %+v", f, got, meets, e)
				}
				if meets && (slices.Contains(topics[id], "*") || slices.Contains(topics[id], e.Topic)) {
					ids = append(ids, id)
				}
			}
			slices.Sort(ids)
			if d := cmp.Diff(x.Match(e), ids); d != "" {
				t.Fatalf("(-got +want) %s\nof %+v\nfor %+v", d, want, e)
			}
		}
	})
}

// Many texts are found in one text as each of them is alone, while subscriptions come and go.
func TestManyTextsAreFound(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one goroutine")
	rapid.Check(t, func(t *rapid.T) {
		var x filter.Index
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab.é")), 0, 6, -1)
		wanted := map[string]string{}
		for i, part := range rapid.SliceOfN(text, 90, 400).Draw(t, "parts") {
			id := fmt.Sprint(i % 300)
			value := filter.Value(quoted(part))
			if err := x.Set(id, []string{"*"}, filter.Filter{Where: []filter.Test{{Field: "type", Op: filter.Contains, Value: value}}}); err != nil {
				t.Fatal(err)
			}
			wanted[id] = part
		}
		for _, id := range rapid.SliceOfN(rapid.SampledFrom(slices.Sorted(maps.Keys(wanted))), 0, 50).Draw(t, "gone") {
			x.Remove(id)
			delete(wanted, id)
		}
		e := &filter.Event{Type: rapid.StringOfN(rapid.RuneFrom([]rune("ab.é")), 1, 20, -1).Draw(t, "type")}
		var want []string
		for id, part := range wanted {
			if strings.Contains(e.Type, part) {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		if d := cmp.Diff(x.Match(e), want); d != "" {
			t.Fatalf("%q: (-got +want) %s", e.Type, d)
		}
	})
}

// Numbers have the order of numbers, however they are written.
func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	for _, a := range append(numbers, "-10", "-15e-1", "-1.49", "1e300", "-1e300", "1e-300", "99999999999999999999999999999999999999", "99999999999999999999999999999999999998") {
		for _, b := range numbers {
			for _, op := range []filter.Op{filter.Eq, filter.Gt, filter.Gte, filter.Lt, filter.Lte} {
				f := filter.Filter{Where: []filter.Test{{Field: "data.n", Op: op, Value: filter.Value(b)}}}
				e := filter.Event{Data: []byte(`{"n":` + a + `}`)}
				if got, want := filter.Explain(f, &e).Matched, meets(f, &e); got != want {
					t.Errorf("%s %s %s: got %t, want %t", a, op, b, got, want)
				}
			}
		}
	}
}
