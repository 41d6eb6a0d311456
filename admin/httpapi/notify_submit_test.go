package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/notify"
)

// taker is where notifications go in tests.
type taker struct {
	mu    sync.Mutex
	taken map[holdfast.ID]notify.Notification
	fail  error
}

func (d *taker) Submit(_ context.Context, n notify.Notification) (holdfast.Receipt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, known := d.taken[n.ID]
	switch {
	case d.fail != nil:
		return holdfast.Receipt{}, d.fail
	case known && before.Subject != n.Subject:
		return holdfast.Receipt{}, fmt.Errorf("notify: %w", holdfast.ErrConflict)
	case d.taken == nil:
		d.taken = map[holdfast.ID]notify.Notification{}
	}
	d.taken[n.ID] = n
	return holdfast.Receipt{ID: n.ID, Duplicate: known}, nil
}

func (d *taker) Status(_ context.Context, id holdfast.ID) (notify.Standing, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, known := d.taken[id]
	switch {
	case d.fail != nil:
		return notify.Standing{}, d.fail
	case !known:
		return notify.Standing{}, holdfast.ErrNotFound
	}
	return notify.Standing{ID: id, Status: notify.Retrying, Retries: 2, LastError: "greylisted", Enqueued: n.Origin.Enqueued}, nil
}

func notified(tb testing.TB) (*fixture, *taker) {
	tb.Helper()
	d := &taker{}
	return serve(tb, func(s *httpapi.Server) { s.Notify, s.Directory, s.Channels, s.Notifier = nil, nil, nil, d }), d
}

// NO-04: the id is the answer, at once; it is safe to send again, and tells how
// the notification stands.
func TestANotificationIsTaken(t *testing.T) {
	t.Parallel()
	f, d := notified(t)
	const id = "0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162"
	body := `{"id":"` + strings.ReplaceAll(id, "-", "") + `","type":"alarm","list":"operators","subject":"Tank 4 is full","body":"98 %","data":{"level":98},
		"originInstance":"tank-4","sourceScript":"level.lua","executionId":"7","parentExecutionId":"6"}`
	for i, status := range []int{202, 200} {
		w := f.do(t, call{method: "POST", path: "/v1/notifications", body: body})
		want := fmt.Sprintf(`{"id":%q,"accepted":true,"durability":"local","duplicate":%t}`, id, i == 1)
		if w.Code != status || strings.TrimSpace(w.Body.String()) != want || w.Header().Get("Location") != "/v1/notifications/"+id {
			t.Errorf("got %d %s at %s, want %d %s", w.Code, w.Body, w.Header().Get("Location"), status, want)
		}
	}
	n := d.taken[id]
	o := n.Origin
	if n.Type != "alarm" || n.List != "operators" || n.Subject != "Tank 4 is full" || n.Body != "98 %" || string(n.Data) != `{"level":98}` ||
		o.Instance != "tank-4" || o.Script != "level.lua" || o.Execution != "7" || o.ParentExecution != "6" || time.Since(o.Enqueued) > time.Minute {
		t.Errorf("it is %+v", n)
	}
	is := ok[api.NotificationStatus](t, f, call{method: "GET", path: "/v1/notifications/" + strings.ToUpper(id)})
	if is.ID != id || is.Status != "retrying" || is.Retries != 2 || is.LastError != "greylisted" || is.Enqueued == nil || is.Delivered != nil {
		t.Errorf("it stands as %+v", is)
	}
	minted := ok[api.NotificationAccepted](t, f, call{method: "POST", path: "/v1/notifications", body: `{"list":"l","subject":"s"}`})
	if _, known := d.taken[holdfast.ID(minted.ID)]; !known || minted.ID == "" {
		t.Errorf("got id %q", minted.ID)
	}
	keyed := ok[api.NotificationAccepted](t, f, call{method: "POST", path: "/v1/notifications", body: `{"list":"l","subject":"s"}`, header: map[string]string{"Idempotency-Key": "k"}})
	if keyed.ID != "k" {
		t.Errorf("got id %q, want the one of the header", keyed.ID)
	}
}

// What is wrong with a notification is told when it is sent; a failing store
// takes nothing; a node without notifications says so.
func TestANotificationIsRefused(t *testing.T) {
	t.Parallel()
	f, d := notified(t)
	f.send(t, `{"category":"notification","id":"known","payload":{"list":"l","subject":"s"}}`)
	subject, text := strings.Repeat("x", 1001), strings.Repeat("x", 1<<20)
	for body, want := range map[string]string{
		`{"subject":"s"}`:              "422 list",
		`{"list":"a b","subject":"s"}`: "422 letters",
		`{"list":"l"}`:                 "422 at least one must be set",

		`{"list":"l","subject":"s","source":"elsewhere"}`:  "422 is not a field",
		`{"list":"l","subject":"s","id":"a b"}`:            "422 id",
		`{"list":"l","subject":"s","executionId":"\n"}`:    "422 executionId",
		`{"list":"l","subject":"other","id":"known"}`:      "409 take a new id",
		`{"list":"l","subject":"` + subject + `"}`:         "422 at most 1000 bytes",
		`{"list":"l","subject":"s","body":"` + text + `"}`: "422 too long",
	} {
		w := f.do(t, call{method: "POST", path: "/v1/notifications", body: body})
		status, text, _ := strings.Cut(want, " ")
		if p := problem(t, w); fmt.Sprint(w.Code) != status || !strings.Contains(p.Detail, text) {
			t.Errorf("%.80s: got %d %.200s, want %s", body, w.Code, p.Detail, want)
		}
	}
	if len(d.taken) != 1 {
		t.Errorf("taken are %v", d.taken)
	}
	for path, want := range map[string]string{"/v1/notifications/other": "404 no notification other", "/v1/notifications/a%20b": "422 id"} {
		status, text, _ := strings.Cut(want, " ")
		w := f.do(t, call{method: "GET", path: path})
		if p := problem(t, w); fmt.Sprint(w.Code) != status || !strings.Contains(p.Detail, text) {
			t.Errorf("%s: got %d %s, want %s", path, w.Code, p.Detail, want)
		}
	}
	const send = `{"list":"l","subject":"s"}`
	for name, c := range map[string]struct {
		err                error
		posted, asked      int
		postedSay, askSays string
	}{
		"disk":    {holdfast.ErrDiskFull, 507, 507, "nothing was accepted", ""},
		"central": {fmt.Errorf("no route to host: %w", holdfast.ErrUnavailable), 503, 503, "", "central cannot be asked now: no route to host"},
		"other":   {errors.New("secret"), 500, 500, "its log says why", "its log says why"},
	} {
		d.fail = c.err
		w := f.do(t, call{method: "POST", path: "/v1/notifications", body: send})
		if p := problem(t, w); w.Code != c.posted || !strings.Contains(p.Detail, c.postedSay) || strings.Contains(p.Detail, "secret") {
			t.Errorf("%s: got %d %s", name, w.Code, p.Detail)
		}
		w = f.do(t, call{method: "GET", path: "/v1/notifications/known"})
		if p := problem(t, w); w.Code != c.asked || !strings.Contains(p.Detail, c.askSays) || strings.Contains(p.Detail, "secret") {
			t.Errorf("%s: got %d %s", name, w.Code, p.Detail)
		}
	}
	without := serve(t, func(s *httpapi.Server) { s.Notify, s.Directory, s.Channels = nil, nil, nil })
	for _, c := range []call{
		{method: "POST", path: "/v1/notifications", body: send},
		{method: "POST", path: "/v1/messages", body: `{"category":"notification","payload":` + send + `}`},
		{method: "GET", path: "/v1/notifications/n"},
	} {
		w := without.do(t, c)
		if p := problem(t, w); w.Code != 501 || !strings.Contains(p.Detail, "node plant-7 takes no notifications") {
			t.Errorf("%s %s: got %d %s", c.method, c.path, w.Code, p.Detail)
		}
	}
}

// SF-02, SF-04: a notification may be sent as a message, too: at a site it is one
// for central, with all that a message may say; elsewhere it goes to its channels.
func TestANotificationIsSentAsAMessage(t *testing.T) {
	t.Parallel()
	const payload = `{"list":"operators","subject":"Tank 4 is full"}`
	body := `{"id":"n","category":"notification","originInstance":"tank-4","payload":` + payload
	f, d := notified(t)
	w := f.do(t, call{method: "POST", path: "/v1/messages", body: body + `}`})
	if n := d.taken["n"]; w.Code != 202 || w.Header().Get("Location") != "/v1/notifications/n" || n.List != "operators" || n.Origin.Instance != "tank-4" || n.Origin.Enqueued.IsZero() {
		t.Errorf("got %d %s at %s, and %+v", w.Code, w.Body, w.Header().Get("Location"), n)
	}
	w = f.do(t, call{method: "POST", path: "/v1/messages", body: body + `,"maxRetries":3,"wait":"5s","headers":{"a":"b"}}`})
	if p := problem(t, w); w.Code != 422 || len(p.Errors) != 3 || !strings.Contains(p.Detail, "maxRetries does not apply") {
		t.Errorf("got %d %s", w.Code, p.Detail)
	}

	at := serve(t, aSite)
	at.send(t, body+`,"maxRetries":3,"attemptImmediately":false}`)
	r, err := at.store.Get(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	n, err := notify.Decode(r.Message)
	m := r.Message
	if err != nil || m.Destination != "central" || m.Endpoint != notify.Endpoint || m.Source != "plant-7" || m.Retry.Attempts != 4 || string(m.Payload) != payload ||
		n.Origin.Instance != "tank-4" || n.Origin.Site != "plant-7" || n.Origin.Enqueued.IsZero() {
		t.Errorf("got %+v, %+v, %v", m, n, err)
	}
}
