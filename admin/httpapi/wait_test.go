package httpapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// waiting sends a message in virtual time, and lets act follow a second later.
func waiting(t *testing.T, set func(s *httpapi.Server), body string, act func(f *fixture, w *holdfast.Waiters)) (w *httptest.ResponseRecorder, took time.Duration) {
	t.Helper()
	waiters := &holdfast.Waiters{}
	f := serve(t, func(s *httpapi.Server) {
		s.Waiters = waiters
		if set != nil {
			set(s)
		}
	})
	go func() {
		time.Sleep(time.Second)
		if act != nil {
			act(f, waiters)
		}
	}()
	began := time.Now()
	w = f.do(t, call{method: "POST", path: "/v1/messages", body: body})
	return w, time.Since(began)
}

// SF-03, SF-05, SF-36: what the first attempt came to is the answer, bounded by
// what the request says.
func TestARequestWaitsForTheFirstOutcome(t *testing.T) {
	t.Parallel()
	const sent = `{"id":"m","destination":"inventory","endpoint":"E","wait":"10s"}`
	ended := func(a holdfast.AttemptInfo) func(*fixture, *holdfast.Waiters) {
		return func(_ *fixture, w *holdfast.Waiters) {
			w.ObserveAttempt(holdfast.AttemptInfo{ID: "another", State: holdfast.Delivered})
			a.ID = "m"
			w.ObserveAttempt(a)
			w.ObserveAttempt(a) // nobody waits any more
		}
	}
	refused := &holdfast.Failure{Outcome: holdfast.Permanent, Code: "http_422", Err: errors.New("no such plant")}
	down := func(s *httpapi.Server) {
		s.Lanes = func() []holdfast.LaneStatus { return []holdfast.LaneStatus{{Destination: "inventory"}} }
	}
	byDefault := func(s *httpapi.Server) {
		s.Destinations = func() []admin.Destination { return []admin.Destination{{Name: "inventory", Wait: 5 * time.Second}} }
	}
	for name, c := range map[string]struct {
		set    func(s *httpapi.Server)
		body   string
		act    func(f *fixture, w *holdfast.Waiters)
		status int
		took   time.Duration
		want   string
	}{
		"delivered": {
			nil, sent, ended(holdfast.AttemptInfo{State: holdfast.Delivered, Outcome: holdfast.Succeeded, Response: []byte(`{"n": 1.0}`)}),
			200, time.Second, `"outcome":"delivered","response":{"n": 1.0}}`,
		},
		"an answer that is no JSON": {
			nil, sent, ended(holdfast.AttemptInfo{State: holdfast.Delivered, Outcome: holdfast.Succeeded, Response: []byte("ok")}),
			200, time.Second, `"responseBase64":"b2s="`,
		},
		"transient": {
			nil, sent, ended(holdfast.AttemptInfo{State: holdfast.Pending, Failure: &holdfast.Failure{Err: errors.New("busy")}}),
			202, time.Second, `"state":"pending","accepted":true,"buffered":true,"durability":"local","duplicate":false,"outcome":"transient","lastError":"busy"`,
		},
		"refused": {
			nil, sent, ended(holdfast.AttemptInfo{State: holdfast.Discarded, Outcome: holdfast.Permanent, Failure: refused}),
			422, time.Second, `"urn:holdfast:problem:refused","title":"the destination refused the message","status":422,"detail":"message m is refused: no such plant","message":"m","code":"http_422"`,
		},
		"the last retry of a repeat": {
			nil, sent, ended(holdfast.AttemptInfo{State: holdfast.Parked, Outcome: holdfast.Transient, Failure: &holdfast.Failure{Err: errors.New("busy")}}),
			202, time.Second, `"state":"parked","accepted":true,"buffered":false`,
		},
		"a delay that is longer":     {nil, strings.Replace(sent, `"wait"`, `"delay":"1h","wait"`, 1), nil, 202, 0, `"buffered":true`},
		"nothing":                    {nil, sent, nil, 202, 10 * time.Second, `"buffered":true`},
		"a node that stops":          {nil, sent, func(_ *fixture, w *holdfast.Waiters) { w.Release() }, 202, time.Second, `"buffered":true`},
		"a destination that is down": {down, sent, nil, 202, 0, `"buffered":true`},
		"the destination's wait":     {byDefault, strings.Replace(sent, `,"wait":"10s"`, "", 1), nil, 202, 5 * time.Second, `"buffered":true`},
		"not, by its own word":       {byDefault, strings.Replace(sent, "10s", "0s", 1), nil, 202, 0, `"buffered":true`},
		"not, as it is not tried at once": { // F1-99: whatever the destination's wait is
			byDefault, strings.Replace(sent, `"wait":"10s"`, `"attemptImmediately":false`, 1), nil, 202, 0, `"buffered":true`,
		},
		"attemptImmediately is the default": {
			byDefault, strings.Replace(sent, `"wait":"10s"`, `"attemptImmediately":true`, 1), nil, 202, 5 * time.Second, `"buffered":true`,
		},
		"not, by default": {nil, strings.Replace(sent, `,"wait":"10s"`, "", 1), nil, 202, 0, `"buffered":true`},
		"too long":        {nil, strings.Replace(sent, "10s", "61s", 1), nil, 422, 0, `is longer than 1m`},
		"no duration":     {nil, strings.Replace(sent, "10s", "10", 1), nil, 422, 0, `"field":"wait","value":"10"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				w, took := waiting(t, c.set, c.body, c.act)
				if w.Code != c.status || took != c.took || !strings.Contains(w.Body.String(), c.want) {
					t.Errorf("got %d after %s, %s\nwant %d after %s with %s", w.Code, took, w.Body, c.status, c.took, c.want)
				}
				time.Sleep(2 * time.Second) // what acts has ended
			})
		})
	}
}

// A repeat of what has used up its retries was not refused.
func TestARepeatOfWhatIsExhausted(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) { s.Waiters = &holdfast.Waiters{} })
	const body = `{"id":"m","destination":"inventory","endpoint":"E","wait":"10s"}`
	id := f.send(t, strings.Replace(body, "10s", "0s", 1))
	f.put(t, id, func(r *holdfast.Record) { r.State, r.Reason = holdfast.Parked, holdfast.ReasonExhausted })
	if w := f.do(t, call{method: "POST", path: "/v1/messages", body: body}); w.Code != 200 || !strings.Contains(w.Body.String(), `"state":"parked"`) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// A repeat gets the same answer as far as it is known: what waits is waited
// for, what was refused is refused.
func TestARepeatGetsTheSameAnswer(t *testing.T) {
	t.Parallel()
	for state, want := range map[holdfast.State]struct {
		status int
		took   time.Duration
	}{holdfast.Pending: {200, time.Second}, holdfast.Delivered: {200, 0}, holdfast.Parked: {422, 0}} {
		racetest.Bubble(t, func(t *testing.T) {
			told := atomic.Bool{}
			waiters := &holdfast.Waiters{}
			f := serve(t, func(s *httpapi.Server) { s.Waiters = waiters })
			id := f.send(t, `{"id":"m","destination":"inventory","endpoint":"E"}`)
			f.put(t, id, func(r *holdfast.Record) { r.State, r.LastError = state, "no such plant" })
			go func() {
				time.Sleep(time.Second)
				told.Store(true)
				waiters.ObserveAttempt(holdfast.AttemptInfo{ID: id, State: holdfast.Delivered, Outcome: holdfast.Succeeded, Response: []byte("1")})
			}()
			began := time.Now()
			w := f.do(t, call{method: "POST", path: "/v1/messages", body: `{"id":"m","destination":"inventory","endpoint":"E","wait":"10s"}`})
			var got struct {
				Duplicate bool            `json:"duplicate"`
				Response  json.RawMessage `json:"response"`
				Detail    string          `json:"detail"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); w.Code != want.status || took != want.took || got.Duplicate != (want.status == 200) ||
				(string(got.Response) == "1") != (state == holdfast.Pending) || strings.Contains(got.Detail, "no such plant") != (state == holdfast.Parked) {
				t.Errorf("%s: got %d after %s: %s", state, w.Code, took, w.Body)
			}
			time.Sleep(2 * time.Second)
		})
	}
}

// B0: what a message costs to be accepted does not depend on how many destinations
// there are: the server asks about its own, and never for all.
func TestAMessageAsksAboutItsOwnDestination(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) {
		s.Destinations = func() []admin.Destination {
			t.Error("asked for all destinations")
			return nil
		}
		s.Destination = func(name string) (admin.Destination, bool) {
			return admin.Destination{Name: name, Wait: time.Second}, name == "inventory"
		}
		s.Lanes = func() []holdfast.LaneStatus {
			t.Error("asked for all lanes")
			return nil
		}
		s.Lane = func(name string) (holdfast.LaneStatus, bool) {
			return holdfast.LaneStatus{Destination: name}, true // down: nobody waits
		}
		s.Waiters = &holdfast.Waiters{}
	})
	post := call{method: "POST", path: "/v1/messages", body: `{"id":"m","destination":"inventory","endpoint":"E"}`}
	if w := f.do(t, post); w.Code != http.StatusAccepted {
		t.Errorf("got %d %s, want 202", w.Code, w.Body)
	}
	if w := f.do(t, call{method: "GET", path: "/v1/messages/m"}); w.Code != http.StatusOK {
		t.Errorf("got %d %s, want 200", w.Code, w.Body)
	}
}
