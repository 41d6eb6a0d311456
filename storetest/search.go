package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// searches returns the cases of lists that no index leads.
func searches() map[string]func(k *kit) {
	return map[string]func(k *kit){
		// NO-18.
		"a search finds what it is asked for": searchesFind,
		// NO-18.
		"a search says how far it looked, and goes on": searchesGoOn,
		// NO-18.
		"messages are counted up to a bound": searchesCount,
	}
}

func searchesFind(k *kit) {
	k.standing("a")
	k.pass(time.Hour)
	k.put(
		holdfast.Message{ID: "blue", Destination: "a", Endpoint: "Paint", CorrelationID: "run-7", Payload: []byte(`{"color":"Blue"}`)},
		holdfast.Message{ID: "far", Destination: "b", Payload: append(bytes.Repeat([]byte(" "), holdfast.SearchedBytes-8), `"needle in"`...)},
	)
	k.pass(time.Hour)
	k.put(holdfast.Message{ID: "young", Destination: "b", Endpoint: "Paint"})
	// A little earlier: a time for people is not exact to the microsecond.
	came := func(id holdfast.ID) time.Time { return k.get(id).Created.Add(-time.Second) }
	of := func(endpoint string) func(r *holdfast.Record) bool {
		return func(r *holdfast.Record) bool { return r.Message.Endpoint == endpoint }
	}
	text := func(word string) func(r *holdfast.Record, payload []byte) bool {
		return func(_ *holdfast.Record, payload []byte) bool { return strings.Contains(string(payload), word) }
	}
	refused := func(r *holdfast.Record) bool { return r.LastCode == "refused" && r.LastError == "it was refused" }
	for name, c := range map[string]struct {
		q    holdfast.Query
		want []holdfast.ID
	}{
		"a field":                 {holdfast.Query{Match: of("Paint")}, []holdfast.ID{"young", "blue"}},
		"a field and destination": {holdfast.Query{Match: of("Paint"), Destination: "a"}, []holdfast.ID{"blue"}},
		"a field and state":       {holdfast.Query{Match: of("Paint"), States: []holdfast.State{holdfast.Delivered}}, nil},
		"the last error":          {holdfast.Query{Match: refused}, []holdfast.ID{"a-discarded", "a-parked"}},
		"the last error, parked":  {holdfast.Query{Match: refused, States: []holdfast.State{holdfast.Parked}}, []holdfast.ID{"a-parked"}},
		"since":                   {holdfast.Query{Since: came("blue")}, []holdfast.ID{"young", "far", "blue"}},
		"until":                   {holdfast.Query{Until: came("young"), Destination: "b"}, []holdfast.ID{"far"}},
		"between":                 {holdfast.Query{Since: came("blue"), Until: came("young")}, []holdfast.ID{"far", "blue"}},
		"before all":              {holdfast.Query{Until: came("a-delivered").Add(-time.Hour)}, nil},
		"text":                    {holdfast.Query{Text: text("Blue")}, []holdfast.ID{"blue"}},
		"the end of what is read": {holdfast.Query{Text: text(`"needle`)}, []holdfast.ID{"far"}},
		"beyond that":             {holdfast.Query{Text: text("needle in")}, nil},
		"text and field":          {holdfast.Query{Text: text("{}"), Match: of("Paint")}, []holdfast.ID{"young"}},
	} {
		for _, limit := range []int{1, 50} {
			c.q.Limit = limit
			if got := recordIDs(k.all(c.q)); !slices.Equal(got, c.want) {
				k.t.Errorf("%s, by %d: got %v, want %v", name, limit, got, c.want)
			}
		}
		c.q.Count = 100
		if p := k.list(c.q); p.Count != len(c.want) || p.Next != "" || len(p.Records) > 0 {
			k.t.Errorf("%s: counted %d, %d records, next %q; want %d and no more", name, p.Count, len(p.Records), p.Next, len(c.want))
		}
	}
}

func (k *kit) list(q holdfast.Query) holdfast.Page {
	k.t.Helper()
	p, err := k.List(k.ctx(), q)
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

// searchesGoOn looks for one message among thousands, while more come.
func searchesGoOn(k *kit) {
	k.put(holdfast.Message{ID: "needle", Destination: "a"})
	k.pass(time.Hour)
	for i := range 12 {
		k.put(many(500, fmt.Sprint("hay", i), holdfast.Message{Destination: "a"})...)
	}
	q := holdfast.Query{Match: func(r *holdfast.Record) bool {
		return r.Message.ID == "needle" || strings.HasPrefix(string(r.Message.ID), "late")
	}}
	first := k.list(q)
	if len(first.Records) > 0 || first.Next == "" || first.LookedUntil.IsZero() {
		k.t.Fatalf("got %v until %v, next %q: want nothing yet, and how far it looked", recordIDs(first.Records), first.LookedUntil, first.Next)
	}
	k.put(holdfast.Message{ID: "late", Destination: "a"})
	q.After = first.Next
	for pages := 1; ; pages++ {
		p := k.list(q)
		if len(p.Records) > 0 || pages > 100 {
			equal(k, "found", recordIDs(p.Records), []holdfast.ID{"needle"})
			break
		}
		if p.Next == "" || p.LookedUntil.After(first.LookedUntil) {
			k.t.Fatalf("page %d goes on at %q, and has looked until %v after %v", pages, p.Next, p.LookedUntil, first.LookedUntil)
		}
		q.After = p.Next
	}
	// The times lead to the place at once.
	since, until := k.get("needle").Created.Add(-time.Second), k.get("needle").Created.Add(time.Second)
	if p := k.list(holdfast.Query{Match: q.Match, Since: since, Until: until}); len(p.Records) != 1 || p.Next != "" {
		k.t.Errorf("between two instants: got %v, next %q; want needle and no more", recordIDs(p.Records), p.Next)
	}
}

func searchesCount(k *kit) {
	made := k.standing("a")
	k.put(many(400, "b", holdfast.Message{Destination: "b"})...)
	for _, c := range []struct {
		q    holdfast.Query
		want int
		more bool
	}{
		{holdfast.Query{Count: 1000}, 400 + len(made), false},
		{holdfast.Query{Count: 100}, 100, true},
		{holdfast.Query{Count: 1000, States: []holdfast.State{holdfast.Pending}, Destination: "b"}, 400, false},
		{holdfast.Query{Count: 399, States: []holdfast.State{holdfast.Pending}, Destination: "b"}, 399, true},
		{holdfast.Query{Count: 1000, States: []holdfast.State{holdfast.Parked, holdfast.Expired, holdfast.Discarded}}, 3, false},
		{holdfast.Query{Count: 1000, Destination: "unknown"}, 0, false},
	} {
		if p := k.list(c.q); p.Count != c.want || (p.Next != "") != c.more || len(p.Records) > 0 {
			k.t.Errorf("%v of %q up to %d: got %d, next %q; want %d, more %v", c.q.States, c.q.Destination, c.q.Count, p.Count, p.Next, c.want, c.more)
		}
	}
}
