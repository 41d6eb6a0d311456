package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
)

// failWith parks a message with an error.
func failWith(code, text string) func(r *holdfast.Record) {
	return func(r *holdfast.Record) {
		park(r)
		r.LastCode, r.LastError, r.LastAttempt = code, text, time.Now()
	}
}

// NO-18: each filter finds what it says, alone and with another one, and a fault names its field.
func TestMessagesAreSearched(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.send(t, `{"id": "paint-1", "destination": "inventory", "endpoint": "Paint", "correlationId": "run-7", "orderingKey": "k", "payload": {"color": "Blue"}, "headers": {"shift": "Night"}}`)
	f.send(t, `{"id": "0198F2D3-0000-7000-8000-000000000001", "destination": "inventory", "endpoint": "E", "payload": {}, "headers": {"ce-id": "event-1", "ce-topic": "orders"}}`)
	f.put(t, f.send(t, `{"id": "lost", "destination": "billing", "endpoint": "E", "payload": {}}`), failWith("http_503", "The ERP is away"))
	const uuid = "0198f2d3-0000-7000-8000-000000000001"
	for query, want := range map[string]string{
		"endpoint=Paint": "paint-1", "key=k": "paint-1", "correlation=run-7": "paint-1", "event=event-1": uuid, "topic=orders": uuid,
		"code=http_503": "lost", "error=away+erp": "lost", "error=away+mes": "", "grep=blue+night": "paint-1", "grep=green": "",
		"id=paint": "paint-1", "id=paint-1": "paint-1", "id=0198F2D3": uuid, "id=" + strings.ToUpper(uuid): uuid, "id=0198f2d3-0000-7000-8000-000000000002": "",
		"id=paint-1&state=parked": "", "id=lost&code=http_503": "lost", "id=lost&code=other": "", "endpoint=E&destination=billing": "lost",
		"to=2001-01-01": "", "from=2001-01-01&endpoint=Paint": "paint-1",
	} {
		var got []string
		for _, m := range ok[api.MessagePage](t, f, call{method: http.MethodGet, path: "/v1/messages?" + query}).Messages {
			got = append(got, m.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %q", query, got, want)
		}
	}
	for query, want := range map[string]api.Count{
		"count=10": {Count: 3}, "count=2": {Count: 2, More: true}, "count=10&endpoint=E": {Count: 2}, "count=10&state=expired": {},
		"count=10&id=" + uuid: {Count: 1}, "count=10&state=parked&id=" + uuid: {},
	} {
		if got := ok[api.MessagePage](t, f, call{method: http.MethodGet, path: "/v1/messages?limit=1&" + query}).Count; got == nil || *got != want {
			t.Errorf("%s: counted %+v, want %+v", query, got, want)
		}
	}
	for query, field := range map[string]string{"from=yesterday": "from", "to=31": "to", "error=%00": "error", "cause=a%0Ab": "cause"} {
		w := f.do(t, call{method: http.MethodGet, path: "/v1/messages?" + query})
		if p := problem(t, w); w.Code != http.StatusUnprocessableEntity || len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: got %d %s, want a fault of %s", query, w.Code, w.Body, field)
		}
	}
}

// A group of parked messages is retried or discarded as a whole, and a failure that nobody has seen yet stays (U8).
func TestAGroupIsDiscardedButNoNewFailure(t *testing.T) {
	t.Parallel()
	withBulk(t, func(r bulkRig) {
		t, f := r.t, r.f
		var ids []holdfast.ID
		for i := range 6 {
			id := f.send(t, `{"destination": "inventory", "endpoint": "E", "payload": {}}`)
			f.put(t, id, failWith("refused", fmt.Sprintf("order %d of \"Anna\" is unknown", 10+i)))
			ids = append(ids, id)
		}
		f.put(t, f.send(t, `{"destination": "billing", "endpoint": "E", "payload": {}}`), failWith("refused", "order 7 is unknown"))
		list := ok[api.CauseList](t, f, call{method: http.MethodGet, path: "/v1/parked"})
		if len(list.Causes) != 2 || list.Looked != 7 || !list.LookedUntil.IsZero() {
			t.Fatalf("got %+v, want two causes of seven messages", list)
		}
		c := list.Causes[0]
		if c.Count != 6 || c.Destination != "inventory" || c.Code != "refused" || c.Error != "order ‹n› of ‹text› is unknown" || c.Sample != string(ids[5]) {
			t.Errorf("got %+v", c)
		}
		if one := ok[api.CauseList](t, f, call{method: http.MethodGet, path: "/v1/parked?destination=billing&within=1s"}); len(one.Causes) != 1 || one.Causes[0].Count != 1 {
			t.Errorf("of billing: %+v", one)
		}
		if page := ok[api.MessagePage](t, f, call{method: http.MethodGet, path: "/v1/messages?state=parked&cause=" + url.QueryEscape(c.ID)}); len(page.Messages) != 6 {
			t.Errorf("the cause's messages are %+v", page.Messages)
		}
		ok[api.Message](t, f, call{method: http.MethodPost, path: "/v1/messages/" + string(ids[5]) + "/retry"}) // it is not parked any more
		added := ok[api.Bulk](t, f, call{method: http.MethodPost, path: "/v1/bulk", body: `{"list": "messages", "verb": "discard", "filter": {"cause": "` + c.ID + `"}, "paused": true}`})
		time.Sleep(time.Second) // of virtual time
		f.put(t, ids[0], failWith("refused", "order 99 of \"Bert\" is unknown"))
		f.put(t, ids[1], func(r *holdfast.Record) { r.LastError = "the disk is full" })
		ok[api.Message](t, f, call{method: http.MethodPost, path: "/v1/messages/" + string(ids[4]) + "/retry"})
		ok[api.Bulk](t, f, call{method: http.MethodPost, path: "/v1/bulk/" + added.ID + "/resume"})
		r.run()
		if got := ok[api.Bulk](t, f, call{method: http.MethodGet, path: "/v1/bulk/" + added.ID}); got.Done != 2 || got.Refused != 3 {
			t.Errorf("got %+v, want two done and three refused", got)
		}
		for i, want := range []string{"parked", "parked", "discarded", "discarded", "pending", "pending"} {
			if m := ok[api.MessageDetail](t, f, call{method: http.MethodGet, path: "/v1/messages/" + string(ids[i])}); m.State != want {
				t.Errorf("message %d is %s, want %s", i, m.State, want)
			}
		}
	})
}

// A search of payloads reads content, and stands in the journal as reading does.
func TestASearchOfContentIsRecorded(t *testing.T) {
	t.Parallel()
	log := &callLog{}
	f := serve(t, func(s *httpapi.Server) { s.Calls = log })
	for _, query := range []string{"grep=blue", "error=blue"} {
		f.do(t, call{method: http.MethodGet, path: "/v1/messages?" + query})
	}
	if d := cmp.Diff(log.lines, []string{"called list-messages  local delivered"}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}
