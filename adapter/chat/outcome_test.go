package chat_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/chat"
	"github.com/holdfast-mq/holdfast/notify"
)

// The outcome rules, over all kinds with one target (NO-07, NO-09).
func TestOutcomesOfAnswers(t *testing.T) {
	t.Parallel()
	const ok = "ok" // what Slack says; others do not mind
	for name, c := range map[string]struct {
		status  int
		body    string
		headers []string
		want    string
		except  map[string]string // by kind
		wait    time.Duration
	}{
		"taken":               {200, ok, nil, "accepted", nil, 0},
		"created":             {201, ok, nil, "accepted", nil, 0},
		"accepted (keel#843)": {202, "", nil, "accepted", map[string]string{"slack": "deferred, maybe, unexpected_answer"}, 0},
		"timed out":           {408, "", nil, "deferred, http_408", nil, 0},
		"too early":           {425, "", nil, "deferred, http_425", nil, 0},
		// H3, H7: nothing was taken, and the notification keeps its budget.
		"too many":         {429, "", []string{"Retry-After", "7"}, "unreachable, http_429", nil, 7 * time.Second},
		"too many, a date": {429, "", []string{"Date", "Sat, 28 Nov 2026 13:00:00 GMT", "Retry-After", "Sat, 28 Nov 2026 13:00:40 GMT"}, "unreachable, http_429", nil, 40 * time.Second},
		"too many, a day":  {429, "", []string{"Retry-After", "86400"}, "unreachable, http_429", nil, time.Hour},
		"broken":           {500, "", nil, "deferred, http_500", nil, 0},
		"away":             {503, "", []string{"Retry-After", "90"}, "deferred, http_503", nil, 90 * time.Second},
		"away for ever":    {503, "", []string{"Retry-After", "99999999999999999999"}, "deferred, http_503", nil, 0},
		"bad request":      {400, "invalid_blocks", nil, "refused, http_400", nil, 0},
		"too large":        {413, "", nil, "refused, http_413", nil, 0},
		"unprocessable":    {422, "", nil, "refused, http_422", nil, 0},
		"unauthorized":     {401, "", nil, "lane_fault, http_401", nil, 0},
		"forbidden":        {403, "", nil, "lane_fault, http_403", map[string]string{"ntfy": "deferred, http_403"}, 0},
		"not found":        {404, "", nil, "lane_fault, http_404", nil, 0},
		// H12: the receiver of a webhook says that it is gone for good.
		"gone":            {410, "", nil, "lane_fault, http_410", map[string]string{"webhook": "refused, http_410", "ntfy": "refused, http_410"}, 0},
		"moved":           {301, "", []string{"Location", "/elsewhere"}, "lane_fault, http_301", nil, 0},
		"to a login":      {302, "", []string{"Location", "/login"}, "lane_fault, http_302", nil, 0},
		"no such status":  {799, "", nil, "deferred, http_799", nil, 0},
		"hostile JSON":    {200, `{"id":{"a":[[[[`, nil, "accepted", map[string]string{"slack": "deferred, maybe, unexpected_answer"}, 0},
		"ok as a word":    {200, " ok\n", nil, "accepted", nil, 0},
		"ok in JSON":      {200, `{"ok":true}`, nil, "accepted", nil, 0},
		"a login's page":  {200, "<html>", nil, "accepted", map[string]string{"slack": "deferred, maybe, unexpected_answer"}, 0},
		"no such channel": {200, `{"ok":false,"error":"channel_not_found"}`, nil, "accepted", map[string]string{"slack": "lane_fault, slack_error"}, 0}, // H6
		"bad blocks":      {200, `{"ok":false,"error":"invalid_blocks"}`, nil, "accepted", map[string]string{"slack": "refused, slack_error"}, 0},
		"too many, in it": {200, `{"ok":false,"error":"ratelimited"}`, nil, "accepted", map[string]string{"slack": "unreachable, slack_error"}, 0},
		"something else":  {200, `{"ok":false,"error":"fatal_error"}`, nil, "accepted", map[string]string{"slack": "deferred, slack_error"}, 0},
		"not even a word": {200, `{"ok":false,"error":7}`, nil, "accepted", map[string]string{"slack": "deferred, maybe, unexpected_answer"}, 0},
	} {
		for _, kind := range chat.Kinds() {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				calls := make(chan string, 9)
				at := serve(t, func(w http.ResponseWriter, r *http.Request) {
					calls <- r.Method + " " + r.URL.Path
					answer(c.status, c.body, c.headers...)(w, r)
				})
				r := open(t, kind, own(kind, at), keep(at), nil)
				want := c.want
				if w, ok := c.except[kind]; ok {
					want = w
				}
				report := r.Send(t.Context(), example(), to(""), nil)
				if got := verdict(report, 0); got != want {
					t.Errorf("got %q (%+v), want %q", got, report, want)
				}
				wait := report.To[0].RetryAfter
				if report.Fault != nil {
					wait = report.Fault.RetryAfter
				}
				if c.wait != 0 && wait != c.wait || wait > time.Hour {
					t.Errorf("it waits %s, want %s", wait, c.wait)
				}
				if report.Server != strings.TrimPrefix(at, "http://") || report.Truncated {
					t.Errorf("the report says %+v", report)
				}
				if n := len(calls); n != 1 { // a redirect is not followed
					t.Errorf("there were %d requests", n)
				}
			})
		}
	}
}

// NO-20: each target's end is told when it is known, not after the last one's,
// and where that cannot be recorded no other begins.
func TestEachTargetIsToldByItself(t *testing.T) {
	t.Parallel()
	var calls, told atomic.Int64
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if n := calls.Add(1); n > told.Load()+4 {
			t.Errorf("request %d began after %d ends were told", n, told.Load())
		}
	})
	r := open(t, "ntfy", own("ntfy", at), keep(at), nil)
	var topics []string
	for i := range 40 {
		topics = append(topics, fmt.Sprint("t", i))
	}
	r.Send(t.Context(), example(), to(topics...), func(p notify.Part) bool {
		for i, d := range p.Ends {
			if d.Outcome != notify.Accepted || i >= 40 || p.Server == "" {
				t.Errorf("told %d %+v", i, p)
			}
		}
		told.Add(int64(len(p.Ends)))
		return true
	})
	if calls.Load() != 40 || told.Load() != 40 {
		t.Errorf("%d requests, of which %d were told", calls.Load(), told.Load())
	}
	report := r.Send(t.Context(), example(), to(topics...), func(notify.Part) bool { return false })
	if n := calls.Load() - 40; n > 8 || report.Fault == nil || report.Fault.Outcome != holdfast.NotStarted {
		t.Errorf("after none was recorded there were %d requests: %+v", n, report.Fault)
	}
}

// What Teams answers means less than it seems to, and the report says so.
func TestTeamsHasOnlyTakenIt(t *testing.T) {
	t.Parallel()
	at := serve(t, answer(202, "", "X-Ms-Workflow-Run-Id", "0858"))
	report := open(t, "teams", own("teams", at), keep(at), nil).Send(t.Context(), example(), to(""), nil)
	want := notify.Delivery{Outcome: notify.Accepted, Code: "http_202", Text: "accepted by provider", Receipt: "0858"}
	if report.To[0] != want {
		t.Errorf("got %+v, want %+v", report.To[0], want)
	}
}

func TestIDsOfServersAreKept(t *testing.T) {
	t.Parallel()
	for kind, body := range map[string]string{"ntfy": `{"id":"hwQ2YpKdmg","time":1}`, "gotify": `{"id":18446744073709551617}`} {
		at := serve(t, answer(200, body))
		report := open(t, kind, own(kind, at), keep(at), nil).Send(t.Context(), example(), to(""), nil)
		if got := report.To[0].Receipt; got == "" || !strings.Contains(body, got) {
			t.Errorf("%s: got the receipt %q of %s", kind, got, body)
		}
	}
}

// E61: the end of one target is not that of the others.
func TestTargetsEndOnTheirOwn(t *testing.T) {
	t.Parallel()
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/hooks/%d", &status)
		answer(status, "ok")(w, r)
	})
	s := keep(at)
	targets := object{}
	for _, status := range []string{"200", "400", "401", "404", "410", "429", "503"} {
		s.put("url"+status, at+"/hooks/"+status)
		targets["t"+status] = object{"url": named("url" + status)}
	}
	s.put("gone", "http://127.0.0.1:1/hooks")
	targets["away"], targets["nofile"] = object{"url": named("gone")}, object{"url": named("unwritten")}
	for _, kind := range []string{"webhook", "teams", "slack"} {
		settings := object{"targets": targets}
		if kind == "webhook" {
			settings["signing"] = []object{named("sign")}
		}
		r := open(t, kind, settings, s, nil)
		addresses := []string{"t400", "t200", "t401", "t404", "t410", "t429", "t503", "away", "nofile", "nobody", "", "a/b"}
		report := r.Send(t.Context(), example(), to(addresses...), nil)
		for i, want := range []string{
			"refused, http_400", "accepted", "deferred, http_401", "deferred, http_404", "refused, http_410", "deferred, http_429",
			"deferred, http_503", "deferred, connection_refused", "deferred, secret", "refused, no_target", "refused, no_target", "refused, bad_address",
		} {
			if got := verdict(report, i); got != want {
				t.Errorf("%s, %s: got %q, want %q", kind, addresses[i], got, want)
			}
		}
		if report.Fault != nil {
			t.Errorf("%s: the channel is at fault: %v", kind, report.Fault)
		}
		// Nobody was there: the attempt does not count.
		report = r.Send(t.Context(), example(), to("away", "t200"), nil)
		if got := verdict(report, 0); got != "unreachable, connection_refused" || verdict(report, 1) != "accepted" {
			t.Errorf("%s: got %q and %q", kind, got, verdict(report, 1))
		}
		// What one target answers slows the others down no more than what it
		// lacks; where none has answered, or there is only one, it does.
		for address, want := range map[string]bool{"t200": true, "t401": true, "t429": true, "t503": true, "nofile": true, "away": false} {
			if report := r.Send(t.Context(), example(), to(address), nil); report.Served != want {
				t.Errorf("%s, %s: served %t (%s)", kind, address, report.Served, verdict(report, 0))
			}
		}
		if !report.Served {
			t.Errorf("%s: one target has taken it, and one was away: the channel is slowed down", kind)
		}
		only := object{"url": named("url503")}
		if kind == "webhook" {
			only["signing"] = []object{named("sign")}
		}
		if report := open(t, kind, only, s, nil).Send(t.Context(), example(), to(""), nil); report.Served {
			t.Errorf("%s: the only target answers 503, and the channel is not slowed down", kind)
		}
	}
}

// A topic of ntfy may be forbidden; a token or a server is wrong for all.
func TestTopicsShareTheirServer(t *testing.T) {
	t.Parallel()
	statuses := make(chan int, 2)
	at := serve(t, func(w http.ResponseWriter, r *http.Request) { answer(<-statuses, "")(w, r) })
	r := open(t, "ntfy", own("ntfy", at), keep(at), nil)
	for status, want := range map[int]string{401: "lane_fault, http_401", 404: "lane_fault, http_404", 403: "deferred, http_403"} {
		statuses <- status
		if got := verdict(r.Send(t.Context(), example(), to("alarms"), nil), 0); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestApplicationsOfGotifyHaveTokensOfTheirOwn(t *testing.T) {
	t.Parallel()
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		status := map[string]int{token: 200, "second": 401}[r.Header.Get("X-Gotify-Key")]
		if r.URL.Path != "/base/message" {
			status = 500
		}
		answer(status, `{"id":1}`)(w, r)
	})
	s := keep(at)
	s.put("token2", "second")
	r := open(t, "gotify", object{"url": at + "/base/", "targets": object{"one": object{"token": named("token")}, "two": object{"token": named("token2")}}}, s, nil)
	report := r.Send(t.Context(), example(), to("one", "two", ""), nil)
	for i, want := range []string{"accepted", "deferred, http_401", "refused, no_target"} {
		if got := verdict(report, i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
