package filter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// Each fault names its place, and the way out.
func TestFaultsNameTheirPlace(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{not: `, 8) + "{}" + strings.Repeat("}", 8)
	many := `{types: [` + strings.Repeat("a, ", 101) + `]}`
	long := strings.Repeat("x", 1001)
	for text, want := range map[string]string{
		`{topics: []}`:     "topics|leave it out",
		`{types: [""]}`:    "types[0]|write a name",
		`{types: ["a*"]}`:  "types[0]|order.*",
		`{types: ["*.a"]}`: "types[0]|order.*",
		`{any: []}`:        "any|at least one",
		`{any: [{}, {where: [{field: x, op: eq, value: 1}]}]}`:                            "any[1].where[0].field|data.PATH",
		`{not: {where: [{field: data.x, op: like, value: 1}]}}`:                           "not.where[0].op|suffix",
		`{where: [{field: data., op: exists}]}`:                                           "where[0].field|data.NAME",
		`{where: [{field: 'data.a\\\\.', op: exists}]}`:                                   "where[0].field|data.NAME",
		`{where: [{field: data.a..b, op: exists}]}`:                                       "where[0].field|data.NAME",
		`{where: [{field: 'data.a\b', op: exists}]}`:                                      `where[0].field|write \\`,
		`{where: [{field: attributes., op: exists}]}`:                                     "where[0].field|attributes.NAME",
		`{where: [{field: data.a, op: eq}]}`:                                              "where[0].value|compares with",
		`{where: [{field: data.a, op: eq, value: [1]}]}`:                                  "where[0].value|take a list",
		`{where: [{field: data.a, op: in, value: 1}]}`:                                    "where[0].value|take a list",
		`{where: [{field: data.a, op: in, value: []}]}`:                                   "where[0].value|at least one",
		`{where: [{field: data.a, op: eq, value: {b: 1}}]}`:                               "where[0].value|scalar",
		`{where: [{field: data.a, op: in, value: [[1]]}]}`:                                "where[0].value|scalar",
		`{where: [{field: data.a, op: gt, value: true}]}`:                                 "where[0].value|number or a text",
		`{where: [{field: data.a, op: prefix, value: 1}]}`:                                "where[0].value|a text",
		`{where: [{field: data.a, op: exists, value: 1}]}`:                                "where[0].value|true or false",
		`{where: [{field: data.a, op: eq, value: 1e999999999999}]}`:                       "where[0].value|smaller",
		`{where: [{field: type, op: eq, value: 1}]}`:                                      "where[0].value|in quotes",
		`{where: [{field: attributes.a, op: eq, value: true}]}`:                           "where[0].value|in quotes",
		`{where: [{field: attributes.a, op: in, value: [a, 1]}]}`:                         "where[0].value|several types",
		`{where: [{field: time, op: gt, value: yesterday}]}`:                              "where[0].value|2026-",
		`{where: [{field: time, op: prefix, value: "2026-01-31T09:00:00Z"}]}`:             "where[0].value|a text",
		`{where: [{field: data.a, op: in, value: [` + strings.Repeat("1, ", 257) + `]}]}`: "filter|256",
		`{attributes: {a: ` + long + `}}`:                                                 "attributes.a|1000",
		`{where: [{field: data.a, op: eq, value: ` + long + `}]}`:                         "where[0].value|1000",
		deep: "not.not.not.not.not.not.not.not|flatter",
		many: "filter|split",
	} {
		f := parse(t, text)
		err := f.Validate(filter.Limits{})
		place, way, _ := strings.Cut(want, "|")
		fault, ok := errors.AsType[*holdfast.FieldError](err)
		if !ok || !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%.60s: got %v, want a FieldError", text, err)
		} else if fault.Field != place || !strings.Contains(fault.Problem, way) {
			t.Errorf("%.60s: got %q: %q, want %q", text, fault.Field, fault.Problem, want)
		}
		if l := len(err.Error()); l > 5000 {
			t.Errorf("%.60s: the error has %d bytes", text, l)
		}
	}
	wide := parse(t, many)
	if err := wide.Validate(filter.Limits{Tests: 101}); err != nil {
		t.Errorf("with a wider limit: %v", err)
	}
}
