package filter_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// Both forms keep a filter as it is, each digit of its numbers too.
func TestFormsKeepAFilterExactly(t *testing.T) {
	t.Parallel()
	f := parse(t, `{topics: [a], types: [order.*, "*"], attributes: {zaaktype: "*", "#actie": create},
		where: [{field: data.n, op: gt, value: 123456789012345678901234567890.12345678}, {field: data.e, op: lt, value: -1.50E+30},
			{field: 'data.a\.b', op: in, value: ["x<y&z\u2028", 1.0, true, null, "true", "12"]}, {field: subject, op: exists}],
		any: [{types: [x]}, {}], all: [{not: {types: [y]}}], not: {where: [{field: time, op: lt, value: "2026-01-31T09:00:00Z"}]}}`)
	if got, want := f.Where[0].Value, filter.Value("123456789012345678901234567890.12345678"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for form, marshal := range map[string]func(any) ([]byte, error){"JSON": json.Marshal, "YAML": yaml.Marshal} {
		text, err := marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(parse(t, string(text)), f); d != "" {
			t.Errorf("%s changed the filter (-got +want):\n%s\n%s", form, d, text)
		}
	}
	for form, unmarshal := range map[string]func([]byte, any) error{"JSON": json.Unmarshal, "YAML": yaml.Unmarshal} {
		text, err := json.Marshal(map[string]filter.Filter{"f": f})
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]filter.Filter
		if err := unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(got["f"], f); d != "" {
			t.Errorf("within a longer %s (-got +want):\n%s", form, d)
		}
	}
}

// What is not read is refused with its reason.
func TestTextsThatAreNoFilter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "write {}",
		"{}\n---\n{}":                           "one filter",
		"{} {}":                                 "one filter",
		`{"topic": ["a"]}`:                      "topic",
		`{"Types": ["a"]}`:                      "Types",
		`{"types": ["a"], "types": ["b"]}`:      "types",
		`types: [a]` + "\n" + `types: [b]`:      "types",
		`{"not": {"wher": []}}`:                 "wher",
		`where: [{field: data.a, value: .inf}]`: "plain decimals",
		`where: [{field: data.a, value: 0x1F}]`: "plain decimals",
		`{types: &a [x], any: [{types: *a}]}`:   "write the value out",
		`{? [a] : b}`:                           "plain text",
		`{types: "a"}`:                          "types",
		strings.Repeat(`{"not":`, 500) + "{}" + strings.Repeat("}", 500): "nested deeper",
		strings.Repeat(`{not: `, 500) + "{}" + strings.Repeat("}", 500):  "nested deeper",
	} {
		_, err := filter.Parse([]byte(text))
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want ErrInvalid with %q", text, err, want)
		}
	}
}
