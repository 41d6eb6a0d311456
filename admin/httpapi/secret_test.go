package httpapi_test

import (
	"strings"
	"testing"
)

// What may hold a secret is in no error: settings of a channel, whatever is
// wrong with them, values of headers, payloads, and fields that the request does
// not have.
func TestNoErrorRepeatsWhatMayBeASecret(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.channel(t, "mail")
	for _, c := range []call{
		{method: "PUT", path: "/v1/channels/new", body: `{"kind":"email","settings":{"host":"a\u0000","password":"hunter2"}}`},
		{method: "PUT", path: "/v1/channels/new", body: `{"kind":"email","settings":["hunter2"]}`},
		{method: "PUT", path: "/v1/channels/new", body: `{"kind":"email","settings":"hunter2"}`},
		{method: "PUT", path: "/v1/channels/new", body: `{"kind":"email","settings":{},"settings":{"password":"hunter2"}}`},
		{method: "PUT", path: "/v1/channels/new", body: `{"kind":"email","setting":{"password":"hunter2"}}`},
		{method: "PUT", path: "/v1/channels/new", body: `{"kind":"email","password":"hunter2"}`},
		{method: "PUT", path: "/v1/channels/new", body: `{"kind":{"password":"hunter2"}}`},
		{method: "PUT", path: "/v1/channels/new", body: `{"kind":"email","retry":[{"password":"hunter2"}]}`},
		{method: "PUT", path: "/v1/channels/new", body: `{"kind":"email","retry":{"attempts":{"password":"hunter2"}}}`},
		{method: "PUT", path: "/v1/channels/new", body: `"hunter2"`},
		{method: "PUT", path: "/v1/channels/new", body: `{"kind":"email","settings":"` + strings.Repeat("hunter2", 20000) + `"}`},
		{method: "PUT", path: "/v1/lists/ops", body: `{"recipients":{"password":"hunter2"}}`},
		{method: "PUT", path: "/v1/lists/ops", body: `{"recipients":[{"channel":"mail","address":"a@x","token":"hunter2"}]}`},
		{method: "POST", path: "/v1/messages", body: `{"destination":"till","endpoint":"x","headers":{"Authorization":"Bearer hunter2\u0007"}}`},
		{method: "POST", path: "/v1/messages", body: `{"destination":"till","endpoint":"x","headers":{"Authorization":["hunter2"]}}`},
		{method: "POST", path: "/v1/messages", body: `{"destination":"till","endpoint":"x","payload":1,"payload":"hunter2"}`},
		{method: "POST", path: "/v1/tokens", body: `{"name":"x","secret":"hunter2"}`},
	} {
		got := f.do(t, c)
		if got.Code/100 != 4 {
			t.Errorf("%s: got %d", clipped(c.body), got.Code)
		}
		if text := got.Body.String(); strings.Contains(text, "hunter2") {
			t.Errorf("%s: it is repeated: %s", clipped(c.body), text)
		}
	}
}

func clipped(s string) string { return s[:min(len(s), 120)] }
