package filter_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout/filter"
)

// Whatever a subscriber and a publisher send: a filter is refused, or keeps its form and its meaning.
func FuzzFilter(f *testing.F) {
	for _, text := range append(strangers, friends...) {
		f.Add([]byte(text), []byte(`{"total":1e400,"name":"Zo\u00eb","x":{"":[{}]}}`), "é\xff")
	}
	f.Add([]byte(`{"where":[{"field":"data.a\\.b.0","op":"nin","value":[1,"\u0000",null]}]}`), []byte(`{"a.b":[1]}`), "")
	f.Fuzz(func(t *testing.T, text, data []byte, name string) {
		one, err := filter.Parse(text)
		if err != nil {
			if !errors.Is(err, holdfast.ErrInvalid) {
				t.Fatalf("got %v, want ErrInvalid", err)
			}
			return
		}
		if one.Validate(filter.Limits{}) != nil {
			return
		}
		again, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(parse(t, string(again)), one); d != "" {
			t.Fatalf("%q changed (-got +want):\n%s", again, d)
		}
		event := func() *filter.Event {
			return &filter.Event{Topic: name, Type: "order." + name, Subject: name, Attributes: map[string]string{"country": name, name: "x"}, Data: data}
		}
		var x filter.Index
		if err := x.Set("it", []string{"*"}, one); err != nil {
			t.Fatal(err)
		}
		explained := filter.Explain(one, event())
		if matched := len(x.Match(event())) == 1; matched != explained.Matched || matched != (len(explained.Reasons) == 0) {
			t.Fatalf("matched %t, explained %+v", matched, explained)
		}
		x.Remove("it")
		if ids := x.Match(event()); len(ids) > 0 {
			t.Fatalf("removed, and matched %v", ids)
		}
	})
}
