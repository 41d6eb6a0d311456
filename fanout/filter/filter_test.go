package filter_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/fanout/filter"
)

var at = time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)

func parse(t testing.TB, text string) filter.Filter {
	t.Helper()
	f, err := filter.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func order() *filter.Event {
	return &filter.Event{
		Topic: "orders", Type: "order.created", Source: "/shop", Subject: "A-17", Time: at,
		Attributes: map[string]string{"country": "nl", "priority": "10", "object_type": "x", "#actie": "create", "zaaktype.catalogus": "c"},
		Data:       []byte(`{"total":9223372036854775808,"price":0.1000000000000000000000000000000000001,"paid":true,"coupon":null,"a.b":{"c\\":"dot"},"lines":[{"sku":"x"},{"sku":"y"}],"name":"Zoë"}`),
	}
}

// WH-01: each operator on each sort of field, by index and by explanation.
func TestOperators(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`:                                      true,
		`{topics: [orders]}`:                      true,
		`{topics: [other, orders]}`:               true,
		`{topics: [order]}`:                       false,
		`{types: [order.*]}`:                      true,
		`{types: ["*"]}`:                          true,
		`{types: [order]}`:                        false,
		`{types: [orders.*, order.created]}`:      true,
		`{attributes: {country: nl}}`:             true,
		`{attributes: {country: "*"}}`:            true,
		`{attributes: {country: be}}`:             false,
		`{attributes: {absent: be}}`:              true,
		`{attributes: {objectType: x}}`:           true,
		`{attributes: {object_type: y}}`:          false,
		`{attributes: {"#actie": create}}`:        true,
		`{attributes: {"#actie": destroy}}`:       false,
		`{attributes: {"zaaktype.catalogus": c}}`: true,
		`{where: [{field: data.total, op: eq, value: 9223372036854775808}]}`:     true,
		`{where: [{field: data.total, op: eq, value: 9223372036854775807}]}`:     false,
		`{where: [{field: data.total, op: gt, value: 9223372036854775807}]}`:     true,
		`{where: [{field: data.total, op: lt, value: 9.223372036854775809e18}]}`: true,
		`{where: [{field: data.price, op: gt, value: 0.1}]}`:                     true,
		`{where: [{field: data.price, op: lte, value: 0.1}]}`:                    false,
		`{where: [{field: data.price, op: gt, value: -5}]}`:                      true,
		`{where: [{field: data.price, op: gt, value: "0"}]}`:                     false,
		`{where: [{field: data.paid, op: eq, value: true}]}`:                     true,
		`{where: [{field: data.paid, op: eq, value: "true"}]}`:                   false,
		`{where: [{field: data.coupon, op: exists}]}`:                            true,
		`{where: [{field: data.coupon, op: eq, value: null}]}`:                   true,
		`{where: [{field: data.lines, op: exists}]}`:                             true,
		`{where: [{field: data.voucher, op: exists}]}`:                           false,
		`{where: [{field: data.voucher, op: exists, value: false}]}`:             true,
		`{where: [{field: data.voucher, op: neq, value: 1}]}`:                    true,
		`{where: [{field: data.voucher, op: nin, value: [1, 2]}]}`:               true,
		`{where: [{field: data.voucher, op: lt, value: 1}]}`:                     false,
		`{where: [{field: 'data.a\.b.c\\', op: eq, value: dot}]}`:                true,
		`{where: [{field: data.lines.1.sku, op: eq, value: y}]}`:                 true,
		`{where: [{field: data.lines.01.sku, op: eq, value: y}]}`:                false,
		`{where: [{field: data.lines.2.sku, op: exists}]}`:                       false,
		`{where: [{field: data.name, op: suffix, value: oë}]}`:                   true,
		`{where: [{field: data.name, op: suffix, value: zoë}]}`:                  false,
		`{where: [{field: data.paid, op: suffix, value: e}]}`:                    false,
		`{where: [{field: type, op: contains, value: er.cr}]}`:                   true,
		`{where: [{field: type, op: contains, value: ""}]}`:                      true,
		`{where: [{field: type, op: contains, value: orders}]}`:                  false,
		`{where: [{field: data.name, op: contains, value: Z}]}`:                  true,
		`{where: [{field: data.paid, op: contains, value: t}]}`:                  false,
		`{where: [{field: data.voucher, op: contains, value: ""}]}`:              false,
		`{not: {where: [{field: type, op: contains, value: er.cr}]}}`:            false,
		`{not: {where: [{field: data.voucher, op: contains, value: x}]}}`:        true,
		`{data: {name: Zoë}}`:                                                                              true,
		`{data: {name: Zoe}}`:                                                                              false,
		`{data: {name: "*"}}`:                                                                              true,
		`{data: {voucher: x}}`:                                                                             true,
		`{data: {paid: "true"}}`:                                                                           false,
		`{data: {a_b: x}}`:                                                                                 true,
		`{where: [{field: subject, op: prefix, value: A-}]}`:                                               true,
		`{where: [{field: subject, op: prefix, value: B-}]}`:                                               false,
		`{where: [{field: source, op: nin, value: [/shop]}]}`:                                              false,
		`{where: [{field: attributes.country, op: in, value: [nl, be]}]}`:                                  true,
		`{where: [{field: attributes.country, op: in, value: [de, be]}]}`:                                  false,
		`{where: [{field: attributes.priority, op: gte, value: 9}]}`:                                       true,
		`{where: [{field: attributes.priority, op: gte, value: "9"}]}`:                                     false,
		`{where: [{field: attributes.country, op: neq, value: 9}]}`:                                        true,
		`{where: [{field: attributes.priority, op: eq, value: 1e1}]}`:                                      true,
		`{where: [{field: attributes.objectType, op: exists}]}`:                                            false,
		`{where: [{field: time, op: gte, value: "2026-01-31T10:00:00+01:00"}]}`:                            true,
		`{where: [{field: time, op: gt, value: "2026-01-31T09:00:00Z"}]}`:                                  false,
		`{any: [{types: [x]}, {topics: [orders]}]}`:                                                        true,
		`{any: [{types: [x]}, {topics: [y]}]}`:                                                             false,
		`{all: [{types: [order.*]}, {topics: [orders]}]}`:                                                  true,
		`{all: [{types: [order.*]}, {topics: [x]}]}`:                                                       false,
		`{not: {types: [x]}}`:                                                                              true,
		`{not: {not: {types: [x]}}}`:                                                                       false,
		`{not: {any: [{types: [x]}, {attributes: {country: nl}}]}}`:                                        false,
		`{not: {attributes: {absent: nl}}}`:                                                                false,
		`{not: {where: [{field: data.voucher, op: lt, value: 1}, {field: topic, op: exists}]}}`:            true,
		`{not: {where: [{field: data.total, op: lt, value: 1}, {field: data.paid, op: eq, value: true}]}}`: true,
		`{not: {where: [{field: data.name, op: suffix, value: ë}]}}`:                                       false,
	} {
		f := parse(t, text)
		var x filter.Index
		if err := x.Set("s", []string{filter.EveryTopic}, f); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := len(x.Match(order())) == 1; got != want {
			t.Errorf("%s: matched %t, want %t", text, got, want)
		}
		if got := filter.Explain(f, order()); got.Matched != want || got.Matched != (len(got.Reasons) == 0) {
			t.Errorf("%s: explained %+v, want %t", text, got, want)
		}
	}
}

// A subscription gets the events of its topics, of all with *, and of none without.
func TestTopicsOfASubscription(t *testing.T) {
	t.Parallel()
	var x filter.Index
	for id, topics := range map[string][]string{"both": {"a", "b"}, "one": {"a"}, "other": {"b"}, "every": {"*"}, "none": nil} {
		if err := x.Set(id, topics, filter.Filter{}); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(x.Match(&filter.Event{Topic: "a"}), []string{"both", "every", "one"}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	x.Remove("one")
	x.Remove("never there")
	if err := x.Set("every", []string{"b"}, filter.Filter{}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(x.Match(&filter.Event{Topic: "a"}), []string{"both"}); d != "" {
		t.Errorf("after changes (-got +want):\n%s", d)
	}
}

// A filter that is broken matches nothing and is reported; the others go on. One that is set again
// and broken gets no more events by what it asked for before.
func TestBrokenFilterStopsNobodyElse(t *testing.T) {
	t.Parallel()
	var x filter.Index
	for _, id := range []string{"good", "bad"} {
		if err := x.Set(id, []string{"*"}, filter.Filter{}); err != nil {
			t.Fatal(err)
		}
	}
	broken := filter.Filter{Where: []filter.Test{{Field: "data.x", Op: "matches", Value: "1"}}}
	if err := x.Set("bad", []string{"*"}, broken); err == nil {
		t.Error("a broken filter was not reported")
	}
	if d := cmp.Diff(x.Match(order()), []string{"good"}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	if got := filter.Explain(broken, order()); got.Matched || got.Reasons[0].Place != "filter" {
		t.Errorf("explained %+v", got)
	}
}

// The key rules of Open Notificaties, from its own examples.
func TestNamesOfAttributesAsOpenNotificatiesReadsThem(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"object_type": "objectType", "objectType": "objectType", "verantwoordelijke_organisatie": "verantwoordelijkeOrganisatie",
		"zaaktype.catalogus": "zaaktype.catalogus", "someURL": "someUrl", "URL": "url", "BSN": "bsn", "A": "a", "Zaaktype": "zaaktype",
		"_priv": "priv", "x_1": "x1", "a__b": "aB", "a_b_c": "aBc", "aBC": "aBc", "#actie": "#actie", "": "",
	} {
		if got := filter.Key(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// A name is read more than once on its way from a request to a filter. All forms of one name must meet, at a cost
// that a stranger's name cannot drive up.
func TestTheKeyOfAKeyIsThatKey(t *testing.T) {
	t.Parallel()
	names := []string{""}
	for range 7 {
		for _, name := range slices.Clip(names) {
			for _, c := range []string{"a", "B", "_", "1", "é"} {
				names = append(names, name+c)
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	for _, name := range names {
		if key := filter.Key(name); filter.Key(key) != key {
			t.Fatalf("%q: %q, and that is %q", name, key, filter.Key(key))
		}
	}
	for _, part := range []string{"a__", "_B", "a_b", "aBC_", "_é", "1_", "é_a"} {
		began := time.Now()
		if filter.Key(strings.Repeat(part, 1<<18)); time.Since(began) > 5*time.Second {
			t.Errorf("%q a hundred thousand times takes %v", part, time.Since(began))
		}
	}
}
