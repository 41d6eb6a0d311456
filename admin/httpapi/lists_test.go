package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// listed makes a list with channels mail (addresses need an @) and push.
func listed(tb testing.TB, body string) *fixture {
	tb.Helper()
	f := serve(tb)
	f.channel(tb, "mail")
	ok[api.Channel](tb, f, call{method: "PUT", path: "/v1/channels/push", body: `{"kind":"ntfy","settings":{"host":"n"}}`})
	ok[api.List](tb, f, call{method: "PUT", path: "/v1/lists/ops", body: body})
	return f
}

func (f *fixture) list(tb testing.TB, name string) api.List {
	tb.Helper()
	return ok[api.List](tb, f, call{method: "GET", path: "/v1/lists/" + name})
}

// Issue 5: lists are changed by the API; what is shown can be sent back.
func TestAListThatIsShownCanBeSentBack(t *testing.T) {
	t.Parallel()
	f := listed(t, `{"description":"On call","partial":true,"recipients":[{"channel":"mail","address":"a@x","name":"Doe, \"J\" <é>"},{"channel":"push","address":"alarms","disabled":true}]}`)
	w := f.do(t, call{method: "GET", path: "/v1/lists/ops"})
	before := f.list(t, "ops")
	if got := w.Header().Get("ETag"); got != `"`+before.Version+`"` {
		t.Errorf("got the tag %s of version %s", got, before.Version)
	}
	ok[api.List](t, f, call{method: "PUT", path: "/v1/lists/ops", body: w.Body.String(), header: map[string]string{"If-Match": w.Header().Get("ETag")}})
	after := f.list(t, "ops")
	after.Changed = before.Changed
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	all := ok[api.Lists](t, f, call{method: "GET", path: "/v1/lists"}).Lists
	want := []api.ListSummary{{
		Name: "ops", Description: "On call", Partial: true, Recipients: 2, Disabled: 1, Channels: []string{"mail", "push"},
		Version: before.Version, Changed: all[0].Changed,
	}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w := f.do(t, call{method: "DELETE", path: "/v1/lists/ops"}); w.Code != 204 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	problem(t, f.do(t, call{method: "DELETE", path: "/v1/lists/ops"}))
	problem(t, f.do(t, call{method: "GET", path: "/v1/lists/ops"}))
}

// What is wrong is named with its place in the request, and nothing is stored.
func TestAFaultyListIsRefused(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `%s{"channel":"mail","address":"u%d@x"}`, map[bool]string{true: ","}[i > 0], i)
		}
		return `{"recipients":[` + b.String() + `]}`
	}
	f := listed(t, many(10_000)) // as many as fit
	version := f.list(t, "ops").Version
	cases := map[string]struct{ path, body, fields string }{
		"one too many": {"ops", many(10_001), "recipients"},
		"name":         {"a%2Fb", `{"recipients":[]}`, "name"},
		"other name":   {"ops", `{"name":"all","recipients":[]}`, "name"},
		"description":  {"ops", `{"description":"a\nb","recipients":[]}`, "description"},
		"address":      {"ops", `{"recipients":[{"channel":"mail","address":"a@x"},{"channel":"mail","address":"b"}]}`, "recipients[1].address"},
		"bidi and NUL": {"ops", `{"recipients":[{"channel":"push","address":"a\u0000","name":"x\u001b[31m"}]}`, "recipients[0].address recipients[0].name"},
		"long":         {"ops", `{"recipients":[{"channel":"push","address":"` + strings.Repeat("a", 513) + `"}]}`, "recipients[0].address"},
		"channel":      {"ops", `{"recipients":[{"channel":"fax","address":"1"},{"address":"2"}]}`, "recipients[0].channel recipients[1].channel"},
		"twice":        {"ops", `{"recipients":[{"channel":"mail","address":"a@x"},{"channel":"push","address":"a@x"},{"channel":"mail","address":"a@x","name":"A"}]}`, "recipients[2].address"},
		"unknown":      {"ops", `{"recipients":[{"channel":"mail","mail":"a@x"}]}`, "recipients[0].mail recipients[0].address"},
		"texts":        {"ops", `{"recipients":["a@x"]}`, "recipients[0] recipients[0].channel"},
		"no list":      {"ops", `{"recipients":{"channel":"mail"}}`, "recipients"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := problem(t, f.do(t, call{method: "PUT", path: "/v1/lists/" + c.path, body: c.body}))
			var fields []string
			for _, e := range p.Errors {
				fields = append(fields, e.Field)
			}
			if got := strings.Join(fields, " "); p.Status != 422 || got != c.fields {
				t.Errorf("got %d %s with %q, want faults of %q", p.Status, p.Detail, got, c.fields)
			}
		})
	}
	p := problem(t, f.do(t, call{method: "PUT", path: "/v1/lists/ops", body: strings.ReplaceAll(many(5000), "@", "")}))
	if len(p.Errors) != 20 || len(p.Detail) > 10_000 || !strings.HasSuffix(p.Detail, "; and 4980 more") {
		t.Errorf("got %d faults in %d bytes, want the first 20 and how many there are", len(p.Errors), len(p.Detail))
	}
	if w := f.do(t, call{method: "PUT", path: "/v1/lists/ops", body: `{"recipients":[` + strings.Repeat(" ", 8<<20) + `]}`}); w.Code != 413 {
		t.Errorf("got %d, want a body that is too large refused", w.Code)
	}
	// One more recipient does not fit either.
	if p := problem(t, f.do(t, call{method: "PUT", path: "/v1/lists/ops/recipients", body: `{"channel":"mail","address":"new@x"}`})); p.Status != 422 {
		t.Errorf("got %+v", p)
	}
	if got := f.list(t, "ops").Version; got != version {
		t.Errorf("got version %s, want %s still", got, version)
	}
}

// Single recipients; a request that is repeated changes nothing.
func TestRecipientsAreAddedChangedAndRemoved(t *testing.T) {
	t.Parallel()
	f := listed(t, `{"recipients":[]}`)
	steps := []struct {
		method, query, body, want string
	}{
		{"PUT", "", `{"channel":"mail","address":"a@x"}`, "added 1, changed 0, unchanged 0, removed 0 of 1"},
		{"PUT", "", `{"channel":"mail","address":"a@x"}`, "added 0, changed 0, unchanged 1, removed 0 of 1"},
		{"PUT", "", `{"channel":"mail","address":"a@x","name":"A"}`, "added 0, changed 1, unchanged 0, removed 0 of 1"},
		{"PUT", "", `{"channel":"push"}`, "added 1, changed 0, unchanged 0, removed 0 of 2"},
		{"PUT", "", `{"channel":"push","address":"a@x"}`, "added 1, changed 0, unchanged 0, removed 0 of 3"},
		{"DELETE", "?channel=mail&address=a@x", "", "added 0, changed 0, unchanged 0, removed 1 of 2"},
		{"DELETE", "?channel=push", "", "added 0, changed 0, unchanged 0, removed 1 of 1"},
	}
	for _, s := range steps {
		c := ok[api.ListChange](t, f, call{method: s.method, path: "/v1/lists/ops/recipients" + s.query, body: s.body})
		if got := fmt.Sprintf("added %d, changed %d, unchanged %d, removed %d of %d", c.Added, c.Changed, c.Unchanged, c.Removed, c.Recipients); got != s.want {
			t.Errorf("%s %s%s: got %s, want %s", s.method, s.query, s.body, got, s.want)
		}
		if got := f.list(t, "ops").Version; got != c.Version {
			t.Errorf("%s %s%s: got version %s, want %s", s.method, s.query, s.body, c.Version, got)
		}
	}
	for _, c := range []call{
		{method: "DELETE", path: "/v1/lists/ops/recipients?channel=mail&address=a@x"},
		{method: "DELETE", path: "/v1/lists/none/recipients?channel=push&address=a@x"},
		{method: "PUT", path: "/v1/lists/none/recipients", body: `{"channel":"mail","address":"a@x"}`},
	} {
		if p := problem(t, f.do(t, c)); p.Status != 404 {
			t.Errorf("%s %s: got %+v", c.method, c.path, p)
		}
	}
	// The recipient is on the list; only the channel was not said.
	if p := problem(t, f.do(t, call{method: "DELETE", path: "/v1/lists/ops/recipients?address=a@x"})); p.Status != 422 || p.Errors[0].Field != "channel" || !strings.Contains(p.Detail, "known are mail, push") {
		t.Errorf("without a channel: got %+v", p)
	}
	for body, field := range map[string]string{`{"channel":"mail","address":"a"}`: "address", `{"address":"a@x"}`: "channel", `{"mail":"a@x"}`: "mail"} {
		if p := problem(t, f.do(t, call{method: "PUT", path: "/v1/lists/ops/recipients", body: body})); p.Status != 422 || p.Errors[0].Field != field {
			t.Errorf("%s: got %+v", body, p)
		}
	}
}

// Many who add at once do not undo each other.
func TestRecipientsThatAreAddedAtOnceAreAllThere(t *testing.T) {
	t.Parallel()
	f := listed(t, `{"recipients":[]}`)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			ok[api.ListChange](t, f, call{method: "PUT", path: "/v1/lists/ops/recipients", body: fmt.Sprintf(`{"channel":"mail","address":"u%d@x"}`, i)})
		})
	}
	wg.Wait()
	if got := len(f.list(t, "ops").Recipients); got != 20 {
		t.Errorf("got %d recipients, want 20", got)
	}
}

func imported(tb testing.TB, req api.ImportRequest) string {
	tb.Helper()
	body, err := json.Marshal(req)
	if err != nil {
		tb.Fatal(err)
	}
	return string(body)
}

// E46: what could be two addresses is refused with its line.
func TestAnImportThatIsNotClearNamesItsLines(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ format, text, fields string }{
		"E46":             {"", "a@x\nDoe, Jane <j@x>\n", "line 2"},
		"two in a line":   {"", "a@x, b@x", "line 1"},
		"semicolons":      {"lines", "\n\na@x;b@x", "line 3"},
		"several":         {"", "a b\n<c@x\nd@x>\n\"E\" F <f@x>\nG \"H\" <h@x>", "line 1 line 2 line 3 line 4 line 5"},
		"brackets":        {"", "A <B> <c@x>", "line 1"},
		"open quotes":     {"", `"Doe, Jane <j@x>`, "line 1"},
		"no address":      {"", "a@x\nJane <>\nb", "line 2: address line 3: address"},
		"control":         {"", "a\x07@x", "line 1: address"},
		"csv E46":         {"csv", "name,address\nDoe, Jane,j@x\nA,a@x", "line 2"},
		"csv quotes":      {"csv", "name,address\nA,a@x\nDoe \"J\",j@x\n", "line 3"},
		"csv open":        {"csv", "name,address\n\"Doe,j@x\nA,a@x\n", "line 3"},
		"csv columns":     {"csv", "mail,name,name\n", "line 1 line 1 line 1"},
		"csv empty":       {"csv", "", "text"},
		"csv address":     {"csv", "address,disabled\na@x,maybe\nb,no\n", "line 2: disabled"},
		"csv channel":     {"csv", "address,channel\n1,fax\n", "line 2: channel"},
		"format":          {"vcard", "a@x", "format"},
		"too many":        {"", strings.Repeat("a@x\n", 10_001), "recipients"},
		"too many of csv": {"csv", "address\n" + strings.Repeat("a@x\n", 10_001), "recipients"},
	}
	f := listed(t, `{"recipients":[{"channel":"push","address":"x"}]}`)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := problem(t, f.do(t, call{
				method: "POST", path: "/v1/lists/ops/recipients/import", body: imported(t, api.ImportRequest{Channel: "mail", Format: c.format, Text: c.text}),
			}))
			var fields []string
			for _, e := range p.Errors {
				fields = append(fields, e.Field)
			}
			if got := strings.Join(fields, " "); p.Status != 422 || got != c.fields {
				t.Errorf("got %d %s with %q, want faults of %q", p.Status, p.Detail, got, c.fields)
			}
		})
	}
	t.Cleanup(func() {
		if book, err := f.store.Directory(t.Context()); err == nil && len(book.Lists["ops"].Recipients) != 1 {
			t.Errorf("got %v, want what was there before", book.Lists)
		}
	})
}

// E45, E46: names come through as they are written.
func TestAnImportReadsNamesAsMailProgramsAndSpreadsheetsWriteThem(t *testing.T) {
	t.Parallel()
	mail := func(address, name string) api.Recipient {
		return api.Recipient{Channel: "mail", Address: address, Name: name}
	}
	cases := map[string]struct {
		format, text string
		want         []api.Recipient
	}{
		"lines": {
			"", "\ufeffa@x\r\n  b@x  \r\n\r\nJörg Ü <c@x>\n\"Doe, Jane\" <d@x>\n\"Q \\\"R\\\" \\\\ S\" <e@x>\n<f@x>",
			[]api.Recipient{mail("a@x", ""), mail("b@x", ""), mail("c@x", "Jörg Ü"), mail("d@x", "Doe, Jane"), mail("e@x", `Q "R" \ S`), mail("f@x", "")},
		},
		"csv": {
			"csv", "\ufeffAddress, Name ,channel,disabled\r\na@x,\"Doe, \"\"J\"\" Jane\",,no\r\n\r\ntopic,,push,TRUE\r\n",
			[]api.Recipient{mail("a@x", `Doe, "J" Jane`), {Channel: "push", Address: "topic", Disabled: true}},
		},
		"csv with semicolons": {"csv", "name;address\nDoe, Jane;a@x\n", []api.Recipient{mail("a@x", "Doe, Jane")}},
		"a list's last word":  {"", "a@x\nA <a@x>\n", []api.Recipient{mail("a@x", "A")}},
		"nothing":             {"", "\n", []api.Recipient{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := listed(t, `{"recipients":[]}`)
			request := call{method: "POST", path: "/v1/lists/ops/recipients/import", body: imported(t, api.ImportRequest{Channel: "mail", Format: c.format, Text: c.text})}
			change := ok[api.ListChange](t, f, request)
			got := f.list(t, "ops")
			if diff := cmp.Diff(c.want, got.Recipients); diff != "" || change.Added != len(c.want) || change.Version != got.Version {
				t.Errorf("got %+v (-want +got):\n%s", change, diff)
			}
			if again := ok[api.ListChange](t, f, request); again.Added != 0 {
				t.Errorf("again: got %+v, want nothing added", again)
			}
		})
	}
}

// Whatever the text, it is taken whole or refused with lines.
func FuzzImport(f *testing.F) {
	for _, text := range []string{"a@x", "Doe, Jane <j@x>", `"Doe, Jane" <j@x>`, "address,name\na@x,\"", "address;disabled\n1;2", "\"\\", "<>", "\ufeff", "a\x00@x", "address\n\n\n\"a\"\"\"\n"} {
		f.Add("lines", text)
		f.Add("csv", text)
	}
	fix := listed(f, `{"recipients":[]}`)
	f.Fuzz(func(t *testing.T, format, text string) {
		ok[api.List](t, fix, call{method: "PUT", path: "/v1/lists/ops", body: `{"recipients":[]}`})
		w := fix.do(t, call{method: "POST", path: "/v1/lists/ops/recipients/import", body: imported(t, api.ImportRequest{Channel: "push", Format: format, Text: text})})
		switch w.Code {
		case 200:
		case 422:
			if p := problem(t, w); len(p.Errors) == 0 || len(fix.list(t, "ops").Recipients) != 0 {
				t.Fatalf("%q: got %s", text, w.Body)
			}
		default:
			t.Fatalf("%q: got %d %s", text, w.Code, w.Body)
		}
	})
}
