package httpapi_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/notify"
)

// Whatever the query, the answer is a page or a problem of the caller's.
func FuzzListQuery(f *testing.F) {
	for _, q := range []string{"", "state=parked", "state=parked,expired&limit=3&after=2", "after=%00", "limit=-1", "limit=9e9", "state=%FF", "state=,,", "a;b", "%zz"} {
		f.Add(q)
	}
	fixture := serve(f)
	for range 3 {
		fixture.send(f, message)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/messages", nil)
		r.Host = "localhost"
		r.URL = &url.URL{Path: "/v1/messages", RawQuery: query}
		w := httptest.NewRecorder()
		fixture.handler.ServeHTTP(w, r)
		if w.Code == 200 {
			return
		}
		if p := problem(t, w); w.Code != 422 || len(p.Errors) == 0 {
			t.Fatalf("%q: got %d %s", query, w.Code, w.Body)
		}
	})
}

// Whatever the body, it is accepted or refused with a problem of the
// caller's.
func FuzzSend(f *testing.F) {
	for _, body := range []string{message, "", "{}", `{"payload":{"a":[1,2,{}]},"destination":"inventory","endpoint":"x"}`, `{"ttl":"1w"}`, `{"maxRetries":9223372036854775807,"destination":"inventory","endpoint":"x"}`, `{"id":null}`, "\"", "{\"a\":\xff}"} {
		f.Add(body)
	}
	fixture := serve(f)
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/messages", strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		fixture.handler.ServeHTTP(w, r)
		switch w.Code {
		case 200, 202:
		case 400, 409, 422:
			problem(t, w)
		default:
			t.Fatalf("%q: got %d %s", body, w.Code, w.Body)
		}
	})
}

// Whatever the query, the answer is a page or a problem of the caller's.
func FuzzNotificationQuery(f *testing.F) {
	for _, q := range []string{"", "status=parked,retrying&limit=3&after=2", "from=2026-01-01&to=2026-01-01T00:00:00.5%2B01:00", "stuck=1&subject=a%20b", "site=%FF", "after=%00", "stuck=x"} {
		f.Add(q)
	}
	fixture := serve(f)
	fixture.notified(f, notify.Notification{ID: "n", Subject: "Pump"}, "mail", "teams")
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/notifications", nil)
		r.Host = "localhost"
		r.URL = &url.URL{Path: "/v1/notifications", RawQuery: query}
		w := httptest.NewRecorder()
		fixture.handler.ServeHTTP(w, r)
		if w.Code == 200 {
			return
		}
		if p := problem(t, w); w.Code != 422 || len(p.Errors) == 0 {
			t.Fatalf("%q: got %d %s", query, w.Code, w.Body)
		}
	})
}

// Whatever the body, a channel or list is stored as it is shown then, or
// refused with a problem of the caller's.
func FuzzBook(f *testing.F) {
	for _, body := range []string{
		`{"kind":"email","settings":{"host":"mx"},"retry":{"attempts":-1,"interval":"-1m","waits":["1m"]}}`, `{"kind":"email","settings":null,"retry":null}`,
		`{"recipients":[{"channel":"mail","address":"a@x"},null,{}]}`, `{"recipients":null,"description":"\u0000"}`, `{"retry":[]}`, `{"status":{"state":1}}`,
	} {
		f.Add("channels/c", body)
		f.Add("lists/l", body)
	}
	fixture := serve(f)
	fixture.channel(f, "mail")
	f.Fuzz(func(t *testing.T, path, body string) {
		if path != "channels/c" && path != "lists/l" {
			return
		}
		header := map[string]string{"Content-Type": "application/json"}
		w := fixture.do(t, call{method: "PUT", path: "/v1/" + path, body: body, header: header})
		if w.Code != 200 {
			if p := problem(t, w); w.Code != 400 && w.Code != 412 && (w.Code != 422 || len(p.Errors) == 0) {
				t.Fatalf("%q: got %d %s", body, w.Code, w.Body)
			}
			return
		}
		shown := fixture.do(t, call{method: "GET", path: "/v1/" + path})
		if w := fixture.do(t, call{method: "PUT", path: "/v1/" + path, body: shown.Body.String(), header: header}); w.Code != 200 {
			t.Fatalf("%q: got %d %s for what was shown: %s", body, w.Code, w.Body, shown.Body)
		}
	})
}
