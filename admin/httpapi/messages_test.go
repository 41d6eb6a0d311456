package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

func TestListsAreNarrowedAndPaged(t *testing.T) {
	t.Parallel()
	f := serve(t)
	for i := range 6 {
		id := f.send(t, fmt.Sprintf(`{"id":"m%d","destination":"%s","endpoint":"x"}`, i, []string{"inventory", "billing"}[i%2]))
		f.put(t, id, func(r *holdfast.Record) {
			r.State = []holdfast.State{holdfast.Pending, holdfast.Parked, holdfast.Expired}[i/2]
		})
	}
	cases := map[string]string{
		"":                                    "m5 m4 m3 m2 m1 m0",
		"?state=parked":                       "m3 m2",
		"?state=parked,expired":               "m5 m4 m3 m2",
		"?state=parked&state=pending":         "m3 m2 m1 m0",
		"?destination=billing":                "m5 m3 m1",
		"?destination=billing&state=expired":  "m5",
		"?destination=nowhere":                "",
		"?limit=2":                            "m5 m4 →",
		"?limit=2&after=5":                    "m3 m2 →",
		"?limit=2&after=3":                    "m1 m0",
		"?limit=2&after=2":                    "m0",
		"?state=&destination=&after=&limit=":  "m5 m4 m3 m2 m1 m0",
		"?destination=inventory&limit=3":      "m4 m2 m0",
		"?state=delivered,discarded,claimed":  "",
		"?state=parked,%20expired&limit=500":  "m5 m4 m3 m2",
		"?state=pending,pending,pending":      "m1 m0",
		"?state=parked&destination=inventory": "m2",
	}
	for query, want := range cases {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			page := ok[api.MessagePage](t, f, call{method: "GET", path: "/v1/messages" + query})
			var ids []string
			for _, m := range page.Messages {
				ids = append(ids, m.ID)
			}
			if page.Next != "" {
				ids = append(ids, "→")
			}
			if got := strings.Join(ids, " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if w := f.do(t, call{method: "GET", path: "/v1/messages?destination=nowhere"}); !strings.Contains(w.Body.String(), `"messages":[]`) {
		t.Errorf("got %s, want an empty list rather than null", w.Body)
	}
}

// F1-80: each verb in each state, as Verb.States says.
func TestAVerbIsRefusedWithTheStatesThatItStartsFrom(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		path, body string
		verb       holdfast.Verb
		only       string
	}{
		{"/v1/messages/m/retry", "", holdfast.VerbRequeue, "only a message that is parked, expired or discarded can be retried"},
		{"/_rf/outbox/m/retry", "", holdfast.VerbRequeue, "only a message that is parked, expired or discarded can be retried"},
		{"/v1/messages/m/discard", "", holdfast.VerbDiscard, "only a message that is pending, claimed, parked or expired can be discarded"},
		{"/v1/messages/m/run", "", holdfast.VerbReschedule, "only a message that is pending or claimed can be rescheduled"},
		{"/v1/messages/m/reschedule", `{"in":"2h"}`, holdfast.VerbReschedule, "only a message that is pending or claimed can be rescheduled"},
	} {
		for state := holdfast.Pending; state <= holdfast.Discarded; state++ {
			f := serve(t)
			f.send(t, `{"id":"m","destination":"inventory","endpoint":"x"}`)
			f.put(t, "m", func(r *holdfast.Record) { r.State, r.Failures, r.Tries = state, 6, 6 })
			w := f.do(t, call{method: "POST", path: v.path, body: v.body})
			if v.verb.From(state) {
				if w.Code != 200 {
					t.Errorf("%s of %s: got %d %s", v.path, state, w.Code, w.Body)
				}
				continue
			}
			p := problem(t, w)
			want := []api.Fault{{Field: "state", Value: state.String(), Problem: v.only}}
			if diff := cmp.Diff(want, p.Errors); w.Code != 409 || p.Type != "urn:holdfast:problem:state" || diff != "" {
				t.Errorf("%s of %s: got %d %s (-want +got):\n%s", v.path, state, w.Code, p.Type, diff)
			}
		}
	}
}

// F1-80: who decides about what is being tried is told what becomes of it.
func TestADecisionAboutWhatIsBeingTried(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.send(t, `{"id":"m","destination":"inventory","endpoint":"x"}`)
	f.put(t, "m", func(r *holdfast.Record) { r.State = holdfast.Claimed })
	at := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Second)
	m := ok[api.Message](t, f, call{method: "POST", path: "/v1/messages/m/reschedule", body: fmt.Sprintf(`{"at":%q}`, at.Format(time.RFC3339))})
	if m.State != "claimed" || m.Due == nil || m.Due.Sub(at).Abs() > 2*time.Second {
		t.Errorf("got %s, due %v, want claimed, due %s", m.State, m.Due, at)
	}
	if m := ok[api.Message](t, f, call{method: "POST", path: "/v1/messages/m/discard"}); m.State != "claimed" || !m.Discarding {
		t.Errorf("got %s, discarding %t, want that it is to be discarded", m.State, m.Discarding)
	}
	d := ok[api.MessageDetail](t, f, call{method: "GET", path: "/v1/messages/m"})
	if want := "attempt 1 is under way; it is discarded then, unless that delivers it"; d.WaitsFor != want {
		t.Errorf("got %q, want %q", d.WaitsFor, want)
	}
	last := d.History[len(d.History)-2:]
	if last[0].Event != "rescheduled" || last[0].Due == nil || last[0].TookMs != 0 || last[1].Event != "discarded" || last[1].State != "claimed" || last[1].Actor != "local" {
		t.Errorf("got %+v, want both decisions", last)
	}
}

func TestWhenAMessageIsToBeTried(t *testing.T) {
	t.Parallel()
	for body, says := range map[string]string{
		`{}`:                              "is missing; say in",
		`{"in":"soon"}`:                   "is not a duration",
		`{"in":"-2h"}`:                    "without one",
		`{"in":"1h","at":"x"}`:            "excludes in",
		`{"at":"tomorrow"}`:               "is not an instant",
		`{"at":"2020-01-01T00:00:00Z"}`:   "is in the past",
		`{"when":"2020-01-01T00:00:00Z"}`: "is not a field of this request",
	} {
		f := serve(t)
		f.send(t, `{"id":"m","destination":"inventory","endpoint":"x"}`)
		p := problem(t, f.do(t, call{method: "POST", path: "/v1/messages/m/reschedule", body: body}))
		if p.Status != 422 || !strings.Contains(p.Detail, says) {
			t.Errorf("%s: got %d %q, want 422 that says %q", body, p.Status, p.Detail, says)
		}
	}
}

func TestARetryStartsACycleWithItsOwnTTL(t *testing.T) {
	t.Parallel()
	f := serve(t)
	id := f.send(t, `{"id":"0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162","destination":"inventory","endpoint":"x"}`)
	f.put(t, id, park)
	// The N form of a UUID is the same message (SF-12).
	path := "/v1/messages/" + strings.ReplaceAll(string(id), "-", "") + "/retry"
	m := ok[api.Message](t, f, call{method: "POST", path: path, body: `{"ttl":"2d","force":true}`})
	if m.ID != string(id) || m.State != "pending" || m.Cycle != 2 || m.Failures != 0 {
		t.Errorf("got %+v, want a pending message in cycle 2", m)
	}
	r, err := f.store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if r.Message.TTL != 48*time.Hour {
		t.Errorf("got TTL %s, want 48h", r.Message.TTL)
	}
	last := r.History[len(r.History)-1]
	if last.Kind != holdfast.Requeued || last.Actor != api.Local {
		t.Errorf("got event %s by %q, want requeued by local", last.Kind, last.Actor)
	}
}

func TestAMessageIsShownWithItsHistory(t *testing.T) {
	t.Parallel()
	f := serve(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("east", 3600))
	f.send(t, `{"id":"m","destination":"inventory","endpoint":"x","headers":{"a":"b"},"payload":{"a":1}}`)
	f.put(t, "m", func(r *holdfast.Record) {
		r.State, r.Reason, r.Failures, r.Tries = holdfast.Parked, holdfast.ReasonPermanent, 1, 1
		r.Created, r.Due, r.Expires, r.LastAttempt, r.Settled = at, time.Time{}, at.Add(time.Hour), at, at
		r.LastError, r.Message.TTL = "404 Not Found", time.Hour
		r.History = []holdfast.Entry{
			{Kind: holdfast.Enqueued, State: holdfast.Pending, At: at, Cycle: 1},
			{
				Kind: holdfast.Attempted, State: holdfast.Parked, Reason: holdfast.ReasonPermanent, At: at, Cycle: 1, Attempt: 1,
				Outcome: holdfast.Permanent, Charged: true, Code: "http_404", Error: "404 Not Found", Maybe: true, Took: 1500 * time.Microsecond,
			},
		}
	})
	got := ok[api.MessageDetail](t, f, call{method: "GET", path: "/v1/messages/m"})
	utc, end := at.UTC(), at.Add(time.Hour).UTC()
	want := api.MessageDetail{
		Message: api.Message{
			ID: "m", State: "parked", Reason: "permanent", Source: "plant-7", Destination: "inventory", Endpoint: "x", Kind: "Signal",
			Failures: 1, Tries: 1, Cycle: 1, Size: 7, Created: utc, Expires: &end, LastAttempt: &utc, LastError: "404 Not Found", Settled: &utc,
		},
		WaitsFor: "parked (permanent): retry or discard it",
		Situation: &api.Situation{
			Cause:   "parked_permanent",
			Because: "The destination refused it for good: 404 Not Found. It may have arrived all the same: an attempt sent it, and no answer came.",
			Next:    "Nothing, until a person decides. Sent again as it is, it is refused again unless something was mended there.",
			Actions: []api.Action{
				{Verb: "retry", Of: "message", Name: "m", Text: "Send it again, with all its attempts from the start. Mend the cause first.", Command: "holdfast messages retry m", Allowed: true},
				{Verb: "discard", Of: "message", Name: "m", Text: "Give it up: it is not sent any more.", Command: "holdfast messages discard m", Allowed: true},
			},
		},
		Headers: map[string]string{"a": "b"},
		History: []api.Event{
			{At: utc, Event: "enqueued", State: "pending", Cycle: 1},
			{
				At: utc, Event: "attempted", State: "parked", Reason: "permanent", Cycle: 1, Attempt: 1, Outcome: "permanent",
				Charged: true, Code: "http_404", HTTPStatus: 404, Error: "404 Not Found", MaybeReceived: true, TookMs: 1.5,
			},
		},
		Payload: []byte(`{"a":1}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatAMessageWaitsForIsSaid(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		edit func(r *holdfast.Record)
		lane holdfast.LaneStatus
		want string
	}{
		"retry":       {edit: func(r *holdfast.Record) { due(r, 3, 12*time.Second) }, want: "retry 3 of 5 in 12s"},
		"not charged": {edit: func(r *holdfast.Record) { due(r, 0, 90*time.Second); r.Tries = 4 }, want: "retry 1 of 5 in 1m30s"},
		"own budget": {
			edit: func(r *holdfast.Record) {
				due(r, 2, time.Hour)
				r.Message.Retry = &holdfast.RetryPolicy{Attempts: 10}
			},
			want: "retry 2 of 9 in 1h",
		},
		"no limit": {
			edit: func(r *holdfast.Record) {
				due(r, 7, 49*time.Hour)
				r.Message.Retry = &holdfast.RetryPolicy{Attempts: holdfast.Unlimited}
			},
			want: "retry 7 (no limit) in 49h",
		},
		"destination's": {edit: func(r *holdfast.Record) { due(r, 1, 300*time.Millisecond); r.Message.Destination = "billing" }, want: "retry 1 of 3 in less than a second"},
		"delay":         {edit: func(r *holdfast.Record) { due(r, 0, time.Minute) }, want: "first attempt in 1m: it was sent with a delay, or rescheduled"},
		"slot":          {edit: func(*holdfast.Record) {}, want: "due now; waits for a free slot of destination inventory"},
		"key": {
			edit: func(r *holdfast.Record) { r.Message.OrderingKey = "k" },
			want: "due now; waits for a free slot of destination inventory, or for an earlier message of ordering key k",
		},
		"gone": {edit: func(r *holdfast.Record) { r.Message.Destination = "old" }, want: "destination old is not configured on this node: configure it"},
		"down": {
			edit: func(r *holdfast.Record) { due(r, 3, time.Hour) },
			lane: holdfast.LaneStatus{Problem: "connection refused", NextProbe: 8 * time.Second},
			want: "destination inventory is down (connection refused), next probe in 8s",
		},
		"down, and each message has its own schedule": {
			edit: func(r *holdfast.Record) { due(r, 3, time.Hour) },
			lane: holdfast.LaneStatus{Problem: "connection refused", OwnSchedule: true},
			want: "retry 3 of 5 in 1h",
		},
		"slots that are taken": {
			edit: func(*holdfast.Record) {},
			lane: holdfast.LaneStatus{InFlight: 8, Oldest: 12 * time.Second},
			want: "due now; waits for a free slot of destination inventory, which has 8 requests under way, the oldest for 12s",
		},
		"held": {edit: func(*holdfast.Record) {}, lane: holdfast.LaneStatus{Held: true, Problem: "401 Unauthorized"}, want: "destination inventory is held (401 Unauthorized)"},
		"doubted": { // F1-51
			edit: func(r *holdfast.Record) { r.HeldUntil = time.Now().Add(2 * time.Hour) },
			want: "held: its TTL is over by a clock that is doubted, for 2h at most: run or discard it, or set the clock right",
		},
		"doubted and parked": {
			edit: func(r *holdfast.Record) {
				r.State, r.HeldUntil = holdfast.Parked, time.Now().Add(90*time.Second)
			},
			want: "held: its TTL is over by a clock that is doubted, for 1m30s at most: retry or discard it, or set the clock right",
		},
		"claimed": {edit: func(r *holdfast.Record) { r.State, r.Tries = holdfast.Claimed, 1 }, want: "attempt 2 is under way"},
		"expired": {edit: func(r *holdfast.Record) { r.State = holdfast.Expired }, want: "its TTL ended before it was delivered: retry it with a new one, or discard it"},
		"delivered": {
			edit: func(r *holdfast.Record) { r.State = holdfast.Delivered }, want: "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				lane := c.lane
				lane.Destination, lane.Up = "inventory", lane.Problem == ""
				f := serve(t, func(s *httpapi.Server) { s.Lanes = func() []holdfast.LaneStatus { return []holdfast.LaneStatus{lane} } })
				f.send(t, `{"id":"m","destination":"inventory","endpoint":"x"}`)
				f.put(t, "m", c.edit)
				got := ok[api.MessageDetail](t, f, call{method: "GET", path: "/v1/messages/m"}).WaitsFor
				if got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

func due(r *holdfast.Record, failures int, wait time.Duration) {
	r.Failures, r.Tries, r.Due = failures, failures, time.Now().Add(wait)
}

func TestDestinationsShowTheirLanes(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) {
		s.Lanes = func() []holdfast.LaneStatus {
			return []holdfast.LaneStatus{
				{Destination: "billing", Failures: 5, Limit: 1, InFlight: 1, NextProbe: time.Hour, Problem: "connection refused"},
				{Destination: "inventory", Up: true, Limit: 20},
			}
		}
	})
	f.send(t, `{"id":"m","destination":"billing","endpoint":"x"}`)
	f.send(t, `{"id":"n","destination":"inventory","endpoint":"x"}`)
	f.put(t, "n", func(r *holdfast.Record) { park(r); r.Message.Destination = "old" })
	got := ok[api.DestinationList](t, f, call{method: "GET", path: "/v1/destinations"}).Destinations
	want := []api.DestinationStatus{
		{
			Name: "billing", Configured: true, Pending: 1, Lane: "down", Failures: 5, Concurrency: 1, InFlight: 1, NextProbe: got[0].NextProbe,
			Problem: "connection refused", TTL: "none",
			Timetable: []string{"attempt 1 at once", "attempt 2 after 1m0s (+1m0s)", "attempt 3 after 1m0s (+2m0s)", "attempt 4 after 1m0s (+3m0s)"},
		},
		{Name: "inventory", Configured: true, Lane: "up", Concurrency: 20, TTL: "24h", Timetable: got[1].Timetable},
		{Name: "old", Parked: 1, Lane: "unknown"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if in := time.Until(*got[0].NextProbe); in < 50*time.Minute || in > time.Hour {
		t.Errorf("got a probe in %s, want 1h", in)
	}
}

func TestTheNamesOfTheProtocolAnswerToo(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) {
		s.Health = func() api.Health {
			return api.Health{Status: api.Failing, Checks: []api.Check{{Name: "progress", Status: api.Failing, Detail: "nothing was delivered for 5m"}}}
		}
	})
	for i, state := range []holdfast.State{holdfast.Pending, holdfast.Claimed, holdfast.Parked, holdfast.Expired, holdfast.Delivered} {
		f.put(t, f.send(t, fmt.Sprintf(`{"id":"m%d","destination":"inventory","endpoint":"x"}`, i)), func(r *holdfast.Record) { r.State = state })
	}
	if got, want := ok[api.OutboxStats](t, f, call{method: "GET", path: "/_rf/outbox/stats"}), (api.OutboxStats{Pending: 1, Sending: 1, Failed: 1, Expired: 1}); got != want {
		t.Errorf("outbox: got %+v, want %+v", got, want)
	}
	page := ok[api.MessagePage](t, f, call{method: "GET", path: "/_rf/outbox/failed?limit=1"})
	if len(page.Messages) != 1 || page.Messages[0].ID != "m2" {
		t.Errorf("failed: got %+v, want m2", page.Messages)
	}
	if got, want := ok[api.InboxStats](t, f, call{method: "GET", path: "/_rf/inbox/stats"}), (api.InboxStats{}); got != want {
		t.Errorf("inbox: got %+v, want %+v", got, want)
	}
	w := f.do(t, call{method: "GET", path: "/_rf/health"})
	if w.Code != 503 || !strings.Contains(w.Body.String(), `"status":"failing","node":"plant-7","version":"1.2.3","pending":1,"parked":1`) {
		t.Errorf("health: got %d %s", w.Code, w.Body)
	}
}

func TestTheDuplicateRateIsDuplicatesPerMessage(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) { s.Outbox = counting{Outbox: s.Outbox} })
	want := api.InboxStats{Size: 10, Kept: 3, Received: 8, Duplicates: 2, DuplicateRate: 0.25}
	if got := ok[api.InboxStats](t, f, call{method: "GET", path: "/_rf/inbox/stats"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

type counting struct{ holdfast.Outbox }

func (counting) Counts() holdfast.Counts {
	return holdfast.Counts{Inbox: 10, Kept: 3, Received: 8, Duplicates: 2}
}

func TestKeptMessagesAreListedAndDone(t *testing.T) {
	t.Parallel()
	f := serve(t)
	keep := func(source, id, endpoint, payload string) {
		_, err := f.store.Keep(t.Context(), 0, holdfast.Message{ID: holdfast.ID(id), Source: source, Endpoint: endpoint, Kind: holdfast.Command, Payload: []byte(payload)})
		if err != nil {
			t.Fatal(err)
		}
	}
	keep("engine", "a", "Reserve", `{ "b":1 }`)
	keep("engine", "b", "Ship", `1`)
	keep("engine", "c", "Ship", ``)
	keep("other", "c", "Ship", `"<"`)
	list := func(query string) (ids []string) {
		t.Helper()
		for after := int64(-1); after != 0; {
			page := ok[api.KeptPage](t, f, call{method: "GET", path: fmt.Sprintf("/v1/inbox?limit=2&after=%d&%s", max(after, 0), query)})
			for _, m := range page.Messages {
				ids = append(ids, m.Source+"/"+m.ID)
			}
			after = page.Next
		}
		return ids
	}
	if got, want := list(""), []string{"engine/a", "engine/b", "engine/c", "other/c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := list("endpoint=Ship"), []string{"engine/b", "engine/c", "other/c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if w := f.do(t, call{method: "GET", path: "/v1/inbox"}); !strings.Contains(w.Body.String(), `"payload":{ "b":1 }}`) || !strings.Contains(w.Body.String(), `"payload":"<"}`) {
		t.Errorf("got %s, want the payloads' own bytes", w.Body)
	}

	done := func(id, body string, status int) string {
		t.Helper()
		w := f.do(t, call{method: "POST", path: "/v1/inbox/" + id + "/done", body: body})
		if w.Code != status {
			t.Errorf("done %s %s: got %d %s, want %d", id, body, w.Code, w.Body, status)
		}
		return w.Body.String()
	}
	if got, want := done("a", `{"response": {"ok": 1 } }`, 200), `{"id":"a","source":"engine","done":true}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	done("a", `{"source":"engine","response":{"ok": 1 }}`, 200) // again
	done("a", `{"response":{"ok": 1 }}`, 200)                   // and without the source
	done("a", `{"source":"engine","response":{"ok": 2 }}`, 409) // otherwise
	done("c", ``, 409)                                          // whose?
	done("c", `{"source":"other"}`, 200)                        // that one
	done("c", ``, 200)                                          // now it is clear
	done("c", `{"source":"nobody"}`, 404)
	done("c", `{"source":"other","respons":1}`, 422)
	done("b", `{"response":"`+strings.Repeat("a", 1<<20)+`"}`, 413)
	if got, want := list(""), []string{"engine/b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
