package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// put enqueues messages.
func (s *site) put(t *testing.T, ms ...holdfast.Message) {
	t.Helper()
	for i := range ms {
		m := &ms[i]
		if m.Destination == "" {
			m.Destination = "erp"
		}
		if m.Endpoint == "" {
			m.Endpoint = "OrderApproved"
		}
		m.Kind, m.Source = holdfast.Signal, "shop"
		if m.Payload == nil {
			m.Payload = []byte(`{}`)
		}
	}
	if _, err := s.store.Enqueue(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
}

// park parks the messages of a destination that wait, with this error.
func (s *site) park(t *testing.T, destination, text string) {
	t.Helper()
	b, err := s.store.Claim(t.Context(), map[string]int{destination: 1000})
	if err != nil || len(b.Claims) == 0 {
		t.Fatalf("claimed %d, %v", len(b.Claims), err)
	}
	for _, c := range b.Claims {
		if _, err := s.store.Settle(t.Context(), holdfast.Settlement{
			Seq: c.Seq, Token: c.Token, State: holdfast.Parked, Outcome: holdfast.Permanent, Charged: true, Reason: holdfast.ReasonPermanent, Code: "http_422", Error: text,
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *site) state(t *testing.T, id holdfast.ID) holdfast.State {
	t.Helper()
	r, err := s.store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r.State
}

// U34: each row can be reached by the links alone, once, and newest first.
func TestEveryRowIsReached(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	for i := range 257 {
		s.put(t, holdfast.Message{ID: holdfast.ID(fmt.Sprintf("m-%03d", i))})
	}
	var seen []string
	links := regexp.MustCompile(`name="id" value="([^"]+)"`)
	next := regexp.MustCompile(`href="([^"]+)" rel="next"`)
	for path := "/ui/messages?destination=erp&limit=100"; path != ""; {
		page := body(t, s.get(t, path))
		for _, m := range links.FindAllStringSubmatch(page, -1) {
			seen = append(seen, m[1])
		}
		path = ""
		if m := next.FindStringSubmatch(page); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	if len(seen) != 257 || seen[0] != "m-256" || len(slices.Compact(slices.Sorted(slices.Values(seen)))) != 257 {
		t.Errorf("saw %d rows, the first %v", len(seen), seen[:min(len(seen), 3)])
	}
}

// U14, U23: text of others is text in every field of every page, and names with any characters are found.
func TestHostileTextIsTextEverywhere(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	const evil, name = `<img/src=x/onerror=alert(1)>`, `a/b.c+d"x`
	long := strings.Repeat("x", 8000)
	s.put(t, holdfast.Message{
		ID: "m<script>1", Destination: name, Endpoint: evil, CorrelationID: evil, OrderingKey: evil,
		Headers: map[string]string{"x-evil": evil + "\u202e" + long}, Payload: []byte(`{"a":"</pre><script>alert(1)</script>` + "\u202e" + `"}`),
	})
	s.put(t, holdfast.Message{ID: "binary", Destination: name, Payload: []byte("a\x00b<script>")})
	s.park(t, name, evil+"\u202e\x1b[2J")
	for _, path := range []string{
		"/ui/", "/ui/messages", "/ui/messages?destination=" + url.QueryEscape(name), "/ui/messages?state=" + url.QueryEscape(evil), "/ui/messages?destination=" + url.QueryEscape(evil),
		"/ui/messages/" + api.Segment("m<script>1"), "/ui/messages/binary", "/ui/destinations", "/ui/destinations/" + api.Segment(name), "/ui/messages/" + api.Segment("m<script>1") + "/discard", "/ui/" + api.Segment(evil),
	} {
		w := s.get(t, path)
		page := body(t, w)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s: status %d", path, w.Code)
		}
		for _, acts := range []string{"<img", "<script>", "\u202e", "\x1b", "\x00"} {
			if strings.Contains(page, acts) {
				t.Errorf("%s has %q", path, acts)
			}
		}
	}
	wants(t, body(t, s.get(t, "/ui/messages?destination="+url.QueryEscape(name))), "m&lt;script&gt;1", "binary")
	wants(t, html.UnescapeString(body(t, s.get(t, "/ui/destinations/"+api.Segment(name)))), "<h1>"+name+"</h1>")
}

// U11, U12: a payload is shown as it is, but for white space.
func TestPayloadsAreShownExactly(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	const payload = `{"n":9223372036854775807,"e":1e400,"d":1.10,"a":1,"a":2,"":3,"q\"":4}`
	s.put(t, holdfast.Message{ID: "exact", Payload: []byte(payload)})
	_, rest, _ := strings.Cut(body(t, s.get(t, "/ui/messages/exact")), `aria-label="Payload">`)
	shown, _, _ := strings.Cut(rest, "</pre>")
	if got := strings.NewReplacer("\n", "", " ", "").Replace(html.UnescapeString(shown)); got != payload {
		t.Errorf("got %s, want %s", got, payload)
	}
	w := s.get(t, "/ui/messages/exact/payload")
	if w.Body.String() != payload || w.Header().Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") {
		t.Errorf("as a file: %s, %v", w.Body, w.Header())
	}
}

// Much is folded, and too much is a file.
func TestLargePayloadsAreFolded(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	s.put(t, holdfast.Message{ID: "lines", Payload: []byte("[" + strings.Repeat("1,", 998) + "1]")},
		holdfast.Message{ID: "large", Payload: []byte(`"` + strings.Repeat("x", 300<<10) + `"`)})
	wants(t, body(t, s.get(t, "/ui/messages/lines")), "801 more lines")
	page := body(t, s.get(t, "/ui/messages/large"))
	wants(t, page, "too large to be shown", "/ui/messages/large/payload")
	if len(page) > 40<<10 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// U20: an unknown id is a page that says so.
func TestAnUnknownMessageIsAPage(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	for _, path := range []string{"/ui/messages/none", "/ui/messages/none/payload", "/ui/destinations/none"} {
		w := s.get(t, path)
		if w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: status %d, %v", path, w.Code, w.Header())
		}
		wants(t, body(t, w), "To the overview")
	}
}

// U35, U38: what a person does is told to the audit log with who and why, and what the state does not allow is
// explained where it was asked.
func TestWhatAPersonDoesIsRecorded(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	s.put(t, holdfast.Message{ID: "m-1"})
	s.park(t, "erp", "no such order")
	page := body(t, s.get(t, "/ui/messages/m-1"))
	wants(t, page, "The destination refused it for good: no such order.", "Nothing, until a person decides.", "holdfast messages retry m-1", "Attempt 1: permanent", "HTTP 422", `action="/ui/messages/m-1/retry"`)
	if w := s.post(t, "/ui/messages/m-1/retry", ""); w.Code != http.StatusSeeOther || s.state(t, "m-1") != holdfast.Pending {
		t.Fatalf("retry: status %d, %s", w.Code, s.state(t, "m-1"))
	}
	w := s.post(t, "/ui/messages/m-1/retry", "")
	if w.Code != http.StatusConflict {
		t.Errorf("retried again: status %d", w.Code)
	}
	wants(t, body(t, w), "Not done.", "only a message that is parked, expired or discarded can be retried.", "Timeline", "Cycle 2", "by ana")
	if w := s.post(t, "/ui/messages/m-1/discard", ""); w.Code != http.StatusUnprocessableEntity || s.state(t, "m-1") != holdfast.Pending {
		t.Errorf("without a reason: status %d, %s", w.Code, s.state(t, "m-1"))
	}
	if w := s.post(t, "/ui/messages/m-1/discard", "reason=ticket+7"); w.Code != http.StatusSeeOther || s.state(t, "m-1") != holdfast.Discarded {
		t.Errorf("discard: status %d, %s", w.Code, s.state(t, "m-1"))
	}
	var got []string
	for i := range s.calls.list {
		e := &s.calls.list[i]
		line := fmt.Sprint(e.Code, " ", e.Subject, " ", e.Actor, " ", e.Outcome)
		if strings.Contains(string(e.Detail), `"reason":"ticket 7"`) {
			line += " why"
		}
		got = append(got, line)
	}
	want := []string{
		"get-message m-1 ana delivered", "retry-message m-1 ana delivered", "retry-message m-1 ana permanent", "discard-message m-1 ana permanent", "discard-message m-1 ana delivered why",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
}

// U15, U16: whoever may only look sees what it may not do, with the reason, and is refused if it asks by hand.
func TestWhoMayOnlyLookIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Grant{Rights: []api.Right{api.Read}})
	s.put(t, holdfast.Message{ID: "m-1"})
	s.park(t, "erp", "no")
	for _, path := range []string{"/ui/messages/m-1", "/ui/messages", "/ui/destinations/erp"} {
		page := body(t, s.get(t, path))
		wants(t, page, "disabled", "needs the right operate")
		if strings.Contains(page, `m-1/retry"`) || strings.Contains(page, `name="verb"`) || strings.Contains(page, `/pause"`) {
			t.Errorf("%s offers what is not allowed", path)
		}
	}
	s.calls.list = nil
	for _, path := range []string{"/ui/messages/m-1/retry", "/ui/messages/m-1/discard", "/ui/messages/selected", "/ui/destinations/erp/pause"} {
		if w := s.post(t, path, "id=m-1&verb=retry&reason=x"); w.Code != http.StatusForbidden || s.state(t, "m-1") != holdfast.Parked {
			t.Errorf("%s: status %d, %s", path, w.Code, s.state(t, "m-1"))
		}
	}
	if len(s.calls.list) != 4 {
		t.Errorf("the log has %d refusals, want 4", len(s.calls.list))
	}
}

// U18: discarding is asked for, with the count. What was skipped is said.
func TestSelectedRows(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	s.put(t, holdfast.Message{ID: "m-1"}, holdfast.Message{ID: "m-2"}, holdfast.Message{ID: "m-3"})
	s.park(t, "erp", "no")
	const next = "&next=%2Fui%2Fmessages%3Fstate%3Dparked"
	w := s.post(t, "/ui/messages/selected", "verb=discard&id=m-1&id=m-2"+next)
	wants(t, body(t, w), "Discard 2 messages?", `value="m-1"`, `value="m-2"`)
	if s.state(t, "m-1") != holdfast.Parked {
		t.Error("discarded without a confirmation")
	}
	if w := s.post(t, "/ui/messages/selected", "verb=discard&sure=yes&reason=old&id=m-1&id=m-2"+next); w.Code != http.StatusSeeOther || s.state(t, "m-2") != holdfast.Discarded {
		t.Errorf("status %d, %s", w.Code, s.state(t, "m-2"))
	}
	if w = s.post(t, "/ui/messages/selected", "verb=retry&id=m-3"+next); w.Header().Get("Location") != "/ui/messages?done=retried&rows=1&state=parked" {
		t.Errorf("leads to %s", w.Header().Get("Location"))
	}
	told := s.follow(t, w)
	wants(t, body(t, told), "Rows changed: 1.")
	wants(t, strings.Join(told.Header().Values("Set-Cookie"), ""), "holdfast-said=;", "Max-Age=0")
	to, cookie := w.Header().Get("Location"), w.Result().Cookies()[0]
	for _, link := range []string{to, strings.Replace(to, "rows=1", "rows=9", 1)} { // a link is no form, and tells nothing
		header := []string{"Cookie", "holdfast-said=x"}
		if link != to {
			header[1] = cookie.Name + "=" + cookie.Value
		}
		wantsNone(t, body(t, s.get(t, link, header...)), "Rows changed")
	}
	w = s.post(t, "/ui/messages/selected", "verb=retry&id=m-1&id=m-3"+next)
	wants(t, body(t, w), "Retry: 1 of 2 done", "message m-3 is pending", `href="/ui/messages?state=parked"`)
	if w := s.post(t, "/ui/messages/selected", "verb=retry"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("without rows: status %d", w.Code)
	}
}
