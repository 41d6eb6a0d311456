package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
)

const message = `{"destination":"inventory","endpoint":"OrderApproved","payload":{"order":42}}`

func TestEveryRefusalIsAProblem(t *testing.T) {
	t.Parallel()
	post := func(body string) call { return call{method: "POST", path: "/v1/messages", body: body} }
	cases := map[string]struct {
		call   call
		fail   error // of the store
		status int
		sort   string
		fields []string // of errors
		says   string   // in detail
	}{
		"no such route": {
			call: call{method: "GET", path: "/v2/messages"}, status: 404, sort: "route", fields: []string{"path"}, says: "/openapi.json",
		},
		"wrong method": {
			call: call{method: "PUT", path: "/v1/messages"}, status: 405, sort: "method", fields: []string{"method"}, says: "it takes GET, HEAD, POST",
		},
		"not JSON": {
			call: post("{\n  \"id\": x}"), status: 400, sort: "unreadable", says: "line 2",
		},
		"cut off":          {call: post(`{"id":`), status: 400, sort: "unreadable", says: "ends in the middle"},
		"an array":         {call: post(`[]`), status: 400, sort: "unreadable", says: "must be an object"},
		"two objects":      {call: post(message + `{}`), status: 400, sort: "unreadable", says: "goes on after"},
		"not UTF-8":        {call: post("{\"id\":\"\xff\"}"), status: 400, sort: "unreadable", says: "not UTF-8"},
		"too deep":         {call: post(`{"payload":` + strings.Repeat("[", 20000)), status: 400, sort: "unreadable", says: "exceeded max depth"},
		"form data":        {call: call{method: "POST", path: "/v1/messages", body: "a=b", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}, status: 415, sort: "media-type", fields: []string{"Content-Type"}, says: "application/json"},
		"no content type":  {call: call{method: "POST", path: "/v1/messages", body: "{}", header: map[string]string{"Content-Type": ""}}, status: 415, sort: "media-type", fields: []string{"Content-Type"}},
		"nothing at all":   {call: post(""), status: 422, sort: "invalid", fields: []string{"destination", "endpoint"}, says: "destination must not be empty"},
		"unknown field":    {call: post(`{"destination":"inventory","endpoint":"x","max_retries":3}`), status: 422, sort: "invalid", fields: []string{"max_retries"}, says: "it is written maxRetries"},
		"other case":       {call: post(`{"Destination":"inventory","endpoint":"x"}`), status: 422, sort: "invalid", fields: []string{"Destination", "destination"}, says: "it is written destination"},
		"field twice":      {call: post(`{"destination":"inventory","destination":"billing","endpoint":"x"}`), status: 422, sort: "invalid", fields: []string{"destination"}, says: "given twice"},
		"wrong types":      {call: post(`{"destination":"inventory","endpoint":"x","id":7,"maxRetries":"3","headers":["a"]}`), status: 422, sort: "invalid", fields: []string{"id", "maxRetries", "headers"}},
		"unknown to":       {call: post(`{"destination":"inventroy","endpoint":"x"}`), status: 422, sort: "invalid", fields: []string{"destination"}, says: "known are billing, inventory"},
		"many at once":     {call: post(`{"destination":"inventory","endpoint":"x y","kind":"Note","ttl":"1 day","delay":"soon","maxRetries":-1,"id":"a b"}`), status: 422, sort: "invalid", fields: []string{"ttl", "delay", "maxRetries", "id", "kind", "endpoint"}},
		"too many retries": {call: post(`{"destination":"inventory","endpoint":"x","maxRetries":9223372036854775807}`), status: 422, sort: "invalid", fields: []string{"maxRetries"}, says: "at most 1000000"},
		"ttl of zero":      {call: post(`{"destination":"inventory","endpoint":"x","ttl":"0s"}`), status: 422, sort: "invalid", fields: []string{"ttl"}, says: "write none"},
		"ttl without unit": {call: post(`{"destination":"inventory","endpoint":"x","ttl":"24"}`), status: 422, sort: "invalid", fields: []string{"ttl"}, says: "has no unit"},
		"header too long":  {call: post(`{"destination":"inventory","endpoint":"x","headers":{"a":"` + strings.Repeat("a", 9000) + `"}}`), status: 422, sort: "invalid", fields: []string{"headers.a"}},
		"two ids": {
			call:   call{method: "POST", path: "/v1/messages", body: `{"id":"a","destination":"inventory","endpoint":"x"}`, header: map[string]string{"Idempotency-Key": "b"}},
			status: 422, sort: "invalid", fields: []string{"Idempotency-Key"}, says: `differs from the body's id "a"`,
		},
		"bad key": {
			call:   call{method: "POST", path: "/v1/messages", body: message, header: map[string]string{"Idempotency-Key": "a b"}},
			status: 422, sort: "invalid", fields: []string{"Idempotency-Key"},
		},
		"payload too large": {
			call:   post(`{"destination":"inventory","endpoint":"x","payload":"` + strings.Repeat("a", 1<<20) + `"}`),
			status: 413, sort: "too-large", fields: []string{"payload"}, says: "the payload has 1048578 bytes; this node takes at most 1048576",
		},
		"request too large": {
			call:   post(`{"payload":"` + strings.Repeat("a", 2<<20) + `"}`),
			status: 413, sort: "too-large", fields: []string{"body"}, says: "the request has 2097166 bytes",
		},
		"in doubt":        {call: post(message), fail: fmt.Errorf("enqueue: %w", holdfast.ErrUnknown), status: 503, sort: "outcome-unknown", says: "outcome unknown, send the same id again"}, // F1-128
		"disk full":       {call: post(message), fail: fmt.Errorf("commit: %w", holdfast.ErrDiskFull), status: 507, sort: "disk-full", says: "free some space"},
		"closed":          {call: post(message), fail: holdfast.ErrClosed, status: 503, sort: "unavailable"},
		"broken":          {call: post(message), fail: errors.New("secret detail"), status: 500, sort: "internal", says: "its log says why"},
		"unknown message": {call: call{method: "GET", path: "/v1/messages/nobody"}, status: 404, sort: "not-found", fields: []string{"id"}, says: "nobody"},
		"bad id":          {call: call{method: "GET", path: "/v1/messages/a%20b"}, status: 422, sort: "invalid", fields: []string{"id"}},
		"unknown query":   {call: call{method: "GET", path: "/v1/messages?stat=parked"}, status: 422, sort: "invalid", fields: []string{"stat"}, says: "there are state, destination, held, category, id, endpoint, key, correlation, event, topic, from, to, code, error, grep, cause, count, after, limit"},
		"unknown state":   {call: call{method: "GET", path: "/v1/messages?state=parked,lost"}, status: 422, sort: "invalid", fields: []string{"state"}, says: "lost"},
		"limit no number": {call: call{method: "GET", path: "/v1/messages?limit=ten"}, status: 422, sort: "invalid", fields: []string{"limit"}, says: "whole number"},
		"limit too large": {call: call{method: "GET", path: "/v1/messages?limit=501"}, status: 422, sort: "invalid", fields: []string{"limit"}, says: "must be from 1 to 500"},
		// F1-47.
		"limit of zero":   {call: call{method: "GET", path: "/v1/messages?limit=0"}, status: 422, sort: "invalid", fields: []string{"limit"}, says: `limit "0" must be from 1 to 500`},
		"bad after":       {call: call{method: "GET", path: "/v1/messages?after=x"}, status: 422, sort: "invalid", fields: []string{"after"}},
		"list broken":     {call: call{method: "GET", path: "/v1/messages"}, fail: errors.New("broken"), status: 500, sort: "internal"},
		"retry of none":   {call: call{method: "POST", path: "/v1/messages/nobody/retry"}, status: 404, sort: "not-found", fields: []string{"id"}},
		"retry for ever":  {call: call{method: "POST", path: "/v1/messages/nobody/retry", body: `{"ttl":"none"}`}, status: 422, sort: "invalid", fields: []string{"ttl"}},
		"retry body":      {call: call{method: "POST", path: "/v1/messages/nobody/retry", body: `{"froce":true}`}, status: 422, sort: "invalid", fields: []string{"froce"}},
		"discard of none": {call: call{method: "POST", path: "/v1/messages/nobody/discard"}, status: 404, sort: "not-found", fields: []string{"id"}},
		"done of none":    {call: call{method: "POST", path: "/v1/inbox/nobody/done"}, status: 404, sort: "not-found", fields: []string{"id"}},
		"token name":      {call: call{method: "POST", path: "/v1/tokens", body: `{"name":"a b","role":"king"}`}, status: 422, sort: "invalid", fields: []string{"name", "role"}},
		"token reserved":  {call: call{method: "POST", path: "/v1/tokens", body: `{"name":"local","role":"read"}`}, status: 422, sort: "invalid", fields: []string{"name"}},
		"token unknown":   {call: call{method: "DELETE", path: "/v1/tokens/nobody"}, status: 404, sort: "not-found", fields: []string{"name"}},
		"small body": {
			call:   call{method: "POST", path: "/v1/tokens", body: `{"name":"` + strings.Repeat("a", 70_000) + `"}`},
			status: 413, sort: "too-large", fields: []string{"body"}, says: "at most 65536",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			f.store.FailWith(c.fail)
			w := f.do(t, c.call)
			p := problem(t, w)
			if w.Code != c.status || p.Type != "urn:holdfast:problem:"+c.sort {
				t.Errorf("got %d %s (%s), want %d %s", w.Code, p.Type, p.Detail, c.status, c.sort)
			}
			var fields []string
			for _, fault := range p.Errors {
				fields = append(fields, fault.Field)
				if fault.Problem == "" {
					t.Errorf("field %s: got no problem", fault.Field)
				}
			}
			if diff := cmp.Diff(c.fields, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if !strings.Contains(p.Detail, c.says) {
				t.Errorf("got detail %q, want %q in it", p.Detail, c.says)
			}
			if strings.Contains(p.Detail, "secret") {
				t.Errorf("got detail %q, want no internals", p.Detail)
			}
		})
	}
}

func TestMethodNotAllowedNamesThoseThatAre(t *testing.T) {
	t.Parallel()
	w := serve(t).do(t, call{method: "DELETE", path: "/v1/messages/a/retry"})
	problem(t, w)
	if got := w.Header().Get("Allow"); w.Code != http.StatusMethodNotAllowed || got != "POST" {
		t.Errorf("got %d, Allow %q; want 405, POST", w.Code, got)
	}
}

func TestAStreamLongerThanTheLimitIsCut(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) { s.MaxPayload = 1000 })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/messages", endless{})
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	p := problem(t, w)
	if want := "the request has more than 132072 bytes; this route takes at most 132072"; w.Code != 413 || p.Detail != want {
		t.Errorf("got %d %q, want 413 %q", w.Code, p.Detail, want)
	}
}

// endless is a body without end and without a length.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestAPanicIsAnAnswer(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) { s.Health = func() api.Health { panic("oops") } })
	w := f.do(t, call{method: "GET", path: "/_rf/health"})
	if p := problem(t, w); w.Code != 500 || strings.Contains(p.Detail, "oops") {
		t.Errorf("got %d %q, want 500 without internals", w.Code, p.Detail)
	}
}

func TestAServerThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	_, err := (&httpapi.Server{Service: &admin.Service{MaxPayload: -1}, AuthRequired: true}).Handler()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{"Outbox", "Enqueuer", "Inbox", "Destinations", "Name", "MaxPayload", "lock everybody out"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %s in it", err, want)
		}
	}
}

// F1-09: a small request does not get a large answer. A problem names 20 faults
// and tells how many more there are.
func TestAProblemNamesAFewFaultsAndANumber(t *testing.T) {
	t.Parallel()
	f := serve(t)
	unknown := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"f%d":1,`, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, c := range map[string]struct{ method, path, body, says string }{
		"unknown fields":            {"POST", "/v1/messages", "{" + unknown(50_000) + "}", "; and 49982 more"},
		"fields of entries":         {"PUT", "/v1/lists/ops", `{"recipients":[` + strings.TrimSuffix(strings.Repeat("{"+unknown(3)+"},", 9_000), ",") + "]}", "; and 44979 more"},
		"lines of a text to import": {"POST", "/v1/lists/ops/recipients/import", `{"text":"` + strings.Repeat("a b"+`\n`, 5_000) + `"}`, "; and 4980 more"},
	} {
		w := f.do(t, call{method: c.method, path: c.path, body: c.body})
		p := problem(t, w)
		if len(p.Errors) != 20 || !strings.HasSuffix(p.Detail, c.says) || w.Body.Len() > 16<<10 {
			t.Errorf("%s: got %d faults in %d bytes, want 20 and %q at the end of %s", name, len(p.Errors), w.Body.Len(), c.says, p.Detail)
		}
	}
}
