package httpapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/notify"
)

// channel makes one of e-mail.
func (f *fixture) channel(tb testing.TB, name string) {
	tb.Helper()
	ok[api.Channel](tb, f, call{method: "PUT", path: "/v1/channels/" + name, body: `{"kind":"email","settings":{"host":"mx"}}`})
}

// Issue 5: channels are changed by the API; what is shown can be sent back.
func TestAChannelThatIsShownCanBeSentBack(t *testing.T) {
	t.Parallel()
	f := serve(t)
	body := `{"kind":"email","settings":{"host":"mx", "password":"smtp-password"},"retry":{"attempts":5,"waits":["1m","1h"]},"workers":2,"disabled":true}`
	made := ok[api.Channel](t, f, call{method: "PUT", path: "/v1/channels/mail", body: body})
	w := f.do(t, call{method: "GET", path: "/v1/channels/mail"})
	if got := w.Header().Get("ETag"); got != `"`+made.Version+`"` || made.Version == "" {
		t.Errorf("got the tag %s of version %s", got, made.Version)
	}
	back := ok[api.Channel](t, f, call{method: "PUT", path: "/v1/channels/mail", body: w.Body.String()})
	if back.Version != made.Version {
		t.Errorf("got version %s after the same content, want %s", back.Version, made.Version)
	}
	got := ok[api.Channel](t, f, call{method: "GET", path: "/v1/channels/mail"})
	if got.Changed == nil || time.Since(*got.Changed) > time.Minute {
		t.Errorf("got changed at %v", got.Changed)
	}
	attempts := 5
	want := api.Channel{
		Name: "mail", Kind: "email", Settings: []byte(`{"host":"mx","password":"smtp-password"}`), Workers: 2, Disabled: true, Version: made.Version,
		Retry: &api.ChannelRetry{Attempts: &attempts, Waits: []string{"1m", "1h"}}, Changed: got.Changed, Status: &api.ChannelStatus{State: "disabled"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is wrong is named, all of it, and nothing is stored.
func TestAFaultyChannelIsRefused(t *testing.T) {
	t.Parallel()
	f := serve(t)
	good := `"kind":"email","settings":{"host":"mx"}`
	cases := map[string]struct{ path, body, fields string }{
		"name":               {"a%20b", `{` + good + `}`, "name"},
		"name with a comma":  {"a,b", `{` + good + `}`, "name"},
		"other name":         {"a", `{"name":"b",` + good + `}`, "name"},
		"kind":               {"a", `{"settings":{"host":"mx"}}`, "kind"},
		"unknown kind":       {"a", `{"kind":"fax","settings":{"host":"mx"}}`, "kind"},
		"settings":           {"a", `{"kind":"email"}`, "settings.host"},
		"all of them":        {"a", `{"kind":"fax","settings":{}}`, "kind settings.host"},
		"list":               {"a", `{"kind":"email","settings":[]}`, "settings"},
		"text":               {"a", `{"kind":"email","settings":"host"}`, "settings"},
		"NUL":                {"a", `{"kind":"email","settings":{"host":"\u0000"}}`, "settings"},
		"size":               {"a", `{"kind":"email","settings":{"host":"` + strings.Repeat("x", 64<<10) + `"}}`, "settings"},
		"workers":            {"a", `{` + good + `,"workers":65}`, "workers"},
		"attempts":           {"a", `{` + good + `,"retry":{"attempts":2000000000}}`, "retry.attempts"},
		"attempts as a text": {"a", `{` + good + `,"retry":{"attempts":"10"}}`, "retry.attempts"},
		"interval":           {"a", `{` + good + `,"retry":{"interval":"soon"}}`, "retry.interval"},
		"waits":              {"a", `{` + good + `,"retry":{"waits":["1m","0s","x"]}}`, "retry.waits[1] retry.waits[2]"},
		"many waits":         {"a", `{` + good + `,"retry":{"waits":["1m"` + strings.Repeat(`,"1m"`, 100) + `]}}`, "retry.waits"},
		"waits as a text":    {"a", `{` + good + `,"retry":{"waits":"1m"}}`, "retry.waits"},
		"unknown":            {"a", `{` + good + `,"host":"mx","retry":{"max_attempts":3}}`, "host retry.max_attempts"},
		"retry as a number":  {"a", `{` + good + `,"retry":3}`, "retry"},
		"twice":              {"a", `{` + good + `,"retry":{"attempts":1,"attempts":2}}`, "retry.attempts"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := problem(t, f.do(t, call{method: "PUT", path: "/v1/channels/" + c.path, body: c.body}))
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
		if book, err := f.store.Directory(t.Context()); err == nil && len(book.Channels) > 0 {
			t.Errorf("got %v stored, want none", book.Channels)
		}
	})
}

// NO-10: what is not above zero is taken, and the answer names the setting.
func TestRetrySettingsThatAreNotAboveZeroAreWarnedOf(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		`{"attempts":0}`:                   {"retry.attempts 0 is not above zero: 10 is used"},
		`{"attempts":-1,"interval":"-5m"}`: {"retry.attempts -1 is not above zero: 10 is used", "retry.interval -5m is not above zero: 1m is used"},
		`{"interval":"0s"}`:                {"retry.interval 0s is not above zero: 1m is used"},
		`{"interval":"0s","waits":["1m"]}`: nil, // waits stand instead of it
		`{"attempts":3,"interval":"2m"}`:   nil,
		`{}`:                               nil,
		`null`:                             nil,
	}
	for retry, want := range cases {
		f := serve(t)
		got := ok[api.Channel](t, f, call{method: "PUT", path: "/v1/channels/mail", body: `{"kind":"email","settings":{"host":"mx"},"retry":` + retry + `}`})
		if diff := cmp.Diff(want, got.Warnings); diff != "" {
			t.Errorf("%s (-want +got):\n%s", retry, diff)
		}
	}
	var log bytes.Buffer
	f := serve(t, func(s *httpapi.Server) {
		s.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	ok[api.Channel](t, f, call{method: "PUT", path: "/v1/channels/mail", body: `{"kind":"email","settings":{"host":"mx"},"retry":{"attempts":-1,"interval":"-5m"}}`})
	for _, want := range []string{"retry.attempts -1 is not above zero: 10 is used", "retry.interval -5m is not above zero: 1m is used"} { // NO-21, F1-99
		if line := `level=WARN msg="channel setting replaced" channel=mail warning="` + want + `"`; !strings.Contains(log.String(), line) {
			t.Errorf("the log lacks %s:\n%s", line, log.String())
		}
	}
	if got := ok[api.Channel](t, f, call{method: "GET", path: "/v1/channels/mail"}); len(got.Warnings) != 0 || got.Retry.Interval != "1m" || *got.Retry.Attempts != 10 {
		t.Errorf("later: got %+v, want what is used, without a warning", got)
	}
}

// Two operators do not overwrite each other.
func TestAChangeOfWhatIsNotThereAnyMoreIsRefused(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.channel(t, "mail")
	seen := ok[api.Channel](t, f, call{method: "GET", path: "/v1/channels/mail"}).Version
	ok[api.Channel](t, f, call{method: "PUT", path: "/v1/channels/mail", body: `{"kind":"email","settings":{"host":"mx2"}}`})
	now := ok[api.Channel](t, f, call{method: "GET", path: "/v1/channels/mail"}).Version
	good := `{"kind":"email","settings":{"host":"mx3"}}`
	for _, c := range []struct {
		method, path, body, header, value string
		status                            int
	}{
		{"PUT", "mail", `{"version":"` + seen + `",` + good[1:], "", "", 412},
		{"PUT", "new", `{"version":"` + seen + `",` + good[1:], "", "", 412},
		{"PUT", "mail", good, "If-Match", `"` + seen + `"`, 412},
		{"PUT", "new", good, "If-Match", "*", 412},
		{"PUT", "mail", good, "If-None-Match", "*", 412},
		{"PUT", "mail", good, "If-None-Match", `"x"`, 422},
		{"DELETE", "mail", "", "If-Match", `"` + seen + `"`, 412},
		{"PUT", "new", good, "If-None-Match", "*", 200},
		{"PUT", "mail", good, "If-Match", `"x", W/"` + now + `"`, 200},
		{"PUT", "mail", good, "If-Match", `"` + seen + `"`, 200}, // it is so already: the answer before was lost
		{"PUT", "mail", good, "If-None-Match", "*", 412},
		{"DELETE", "mail", "", "If-Match", "*", 204},
	} {
		w := f.do(t, call{method: c.method, path: "/v1/channels/" + c.path, body: c.body, header: map[string]string{c.header: c.value}})
		if w.Code != c.status {
			t.Errorf("%s %s %s %s %s: got %d %s, want %d", c.method, c.path, c.body, c.header, c.value, w.Code, w.Body, c.status)
		}
		if w.Code == 412 {
			problem(t, w)
		}
	}
}

// Issue 5: a channel's state is shown as ok, back-off or held, with the reason.
func TestChannelsAreShownWithHowTheyFare(t *testing.T) {
	t.Parallel()
	f := serve(t)
	for _, name := range []string{"fine", "away", "barred", "new"} {
		f.channel(t, name)
	}
	f.channels.Fares("fine", holdfast.LaneStatus{Up: true, Limit: 4, InFlight: 2, Since: time.Hour})
	f.channels.Fares("away", holdfast.LaneStatus{Problem: "connection refused", Failures: 7, NextProbe: time.Minute, Limit: 1})
	f.channels.Fares("barred", holdfast.LaneStatus{Held: true, Problem: "535 5.7.8"})
	f.notified(t, notify.Notification{ID: "n1"}, "away", "barred")
	f.put(t, "n1.barred", park)
	list := ok[api.ChannelList](t, f, call{method: "GET", path: "/v1/channels"}).Channels
	got := map[string]api.ChannelStatus{}
	for _, c := range list {
		s := *c.Status
		if (s.Since != nil) != (c.Name == "fine") || (s.NextProbe != nil) != (c.Name == "away") {
			t.Errorf("%s: got since %v, next probe %v", c.Name, s.Since, s.NextProbe)
		}
		s.Since, s.NextProbe = nil, nil
		got[c.Name] = s
	}
	want := map[string]api.ChannelStatus{
		"fine": {State: "ok", Limit: 4, InFlight: 2}, "away": {State: "back-off", Reason: "connection refused", Failures: 7, Limit: 1, Due: 1},
		"barred": {State: "held", Reason: "535 5.7.8", Parked: 1}, "new": {State: "unknown"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := ok[api.DestinationList](t, f, call{method: "GET", path: "/v1/destinations"}); len(got.Destinations) != 2 {
		t.Errorf("got %+v, want no lanes of channels among the destinations", got)
	}
	for id, want := range map[string]string{"n1": "channel away is in back-off (connection refused), next probe in 1m", "n1.barred": "parked (exhausted): retry or discard it"} {
		if got := ok[api.MessageDetail](t, f, call{method: "GET", path: "/v1/messages/" + id}).WaitsFor; got != want {
			t.Errorf("%s waits for %q, want %q", id, got, want)
		}
	}
}

func TestAChannelThatIsNeededIsDeletedByForceOnly(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.channel(t, "mail")
	f.channel(t, "busy")
	ok[api.List](t, f, call{method: "PUT", path: "/v1/lists/ops", body: `{"recipients":[{"channel":"mail","address":"a@x"}]}`})
	f.notified(t, notify.Notification{ID: "n1"}, "busy")
	for name, why := range map[string]string{"mail": "recipients of these lists are on it: ops", "busy": "notifications wait for it: 1"} {
		p := problem(t, f.do(t, call{method: "DELETE", path: "/v1/channels/" + name}))
		if p.Status != 409 || !strings.Contains(p.Detail, why) {
			t.Errorf("%s: got %+v", name, p)
		}
		if w := f.do(t, call{method: "DELETE", path: "/v1/channels/" + name + "?force=true"}); w.Code != 204 {
			t.Errorf("%s by force: got %d %s", name, w.Code, w.Body)
		}
		problem(t, f.do(t, call{method: "DELETE", path: "/v1/channels/" + name}))
	}
	// Now the list reaches nobody, and says so.
	want := []string{`recipients on channel "mail", which does not exist: 1`, "nobody is reached: notifications to this list do not arrive"}
	if diff := cmp.Diff(want, ok[api.List](t, f, call{method: "GET", path: "/v1/lists/ops"}).Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAHeldChannelIsResumed(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.channel(t, "mail")
	f.channels.Fares("mail", holdfast.LaneStatus{Held: true})
	if got := ok[api.Channel](t, f, call{method: "POST", path: "/v1/channels/mail/resume"}); got.Status.State == "held" {
		t.Errorf("got %+v", got.Status)
	}
	problem(t, f.do(t, call{method: "POST", path: "/v1/channels/fax/resume"}))
	for want, err := range map[int]error{404: holdfast.ErrNotFound, 409: holdfast.ErrState, 503: holdfast.ErrClosed} {
		f.channels.FailWith(fmt.Errorf("resume: %w", err))
		if p := problem(t, f.do(t, call{method: "POST", path: "/v1/channels/mail/resume"})); p.Status != want {
			t.Errorf("%v: got %+v, want %d", err, p, want)
		}
	}
	if diff := cmp.Diff([]string{"mail"}, f.channels.Resumed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A test's answer is what the other side said, also where that is no.
func TestATestTellsWhatTheOtherSideSaid(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.channel(t, "mail")
	cases := []struct {
		report notify.Report
		want   api.TestResult
	}{
		{
			notify.Report{Server: "mx:587", TLS: "TLS 1.3", To: []notify.Delivery{{Outcome: notify.Accepted, Code: "250", Receipt: "q7"}}},
			api.TestResult{Accepted: true, Result: "accepted", Code: "250", Receipt: "q7", Server: "mx:587", TLS: "TLS 1.3"},
		},
		{
			notify.Report{To: []notify.Delivery{{Outcome: notify.Refused, Code: "550 5.1.1", Text: "no such user"}}},
			api.TestResult{Result: "refused", Code: "550 5.1.1", Text: "no such user"},
		},
		{
			notify.Report{To: []notify.Delivery{{}}, Fault: &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "535 5.7.8", Err: errors.New("credentials refused")}},
			api.TestResult{Result: "waiting", Outcome: "lane_fault", Code: "535 5.7.8", Text: "credentials refused"},
		},
	}
	for _, c := range cases {
		f.channels.Answer(c.report)
		got := ok[api.TestResult](t, f, call{method: "POST", path: "/v1/channels/mail/test", body: `{"address":"a@x"}`})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for body, status := range map[string]int{`{"address":"nobody"}`: 422, `{"address":"a@x\u0007"}`: 422, `{"mail":"a@x"}`: 422} {
		if p := problem(t, f.do(t, call{method: "POST", path: "/v1/channels/mail/test", body: body})); p.Status != status {
			t.Errorf("%s: got %+v", body, p)
		}
	}
	problem(t, f.do(t, call{method: "POST", path: "/v1/channels/fax/test", body: `{"address":"a@x"}`}))
	if len(f.channels.Tested) != len(cases) {
		t.Errorf("got %q tested, want none more than asked for", f.channels.Tested)
	}
}

// Lists and channels are changed by role admin only; to look takes read.
func TestRolesOfNotifications(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.channel(t, "mail")
	f.notified(t, notify.Notification{ID: "n"}, "mail")
	tokens := map[api.Role]string{}
	for _, role := range []api.Role{api.RoleRead, api.RoleOperate} {
		tokens[role] = ok[api.CreatedToken](t, f, call{method: "POST", path: "/v1/tokens", body: fmt.Sprintf(`{"name":"%s","role":"%s"}`, role, role)}).Secret
	}
	f.AuthRequired = true
	as := func(role api.Role, method, path, body string) int {
		return f.do(t, call{method: method, path: path, body: body, header: map[string]string{"Authorization": "Bearer " + tokens[role]}}).Code
	}
	list := `{"recipients":[]}`
	for _, c := range []struct {
		role               api.Role
		method, path, body string
		status             int
	}{
		{api.RoleRead, "GET", "/v1/notifications/n", "", 200},
		{api.RoleRead, "GET", "/v1/channels/mail", "", 200},
		{api.RoleRead, "GET", "/v1/lists", "", 200},
		{api.RoleRead, "POST", "/v1/notifications/n/retry", "", 403},
		{api.RoleRead, "POST", "/v1/channels/mail/test", "", 403},
		{api.RoleOperate, "POST", "/v1/notifications/n/retry", "", 409},
		{api.RoleOperate, "POST", "/v1/channels/mail/resume", "", 200},
		{api.RoleOperate, "PUT", "/v1/channels/mail", "{}", 403},
		{api.RoleOperate, "DELETE", "/v1/channels/mail", "", 403},
		{api.RoleOperate, "PUT", "/v1/lists/ops", list, 403},
		{api.RoleOperate, "DELETE", "/v1/lists/ops", "", 403},
		{api.RoleOperate, "PUT", "/v1/lists/ops/recipients", "{}", 403},
		{api.RoleOperate, "DELETE", "/v1/lists/ops/recipients", "", 403},
		{api.RoleOperate, "POST", "/v1/lists/ops/recipients/import", "{}", 403},
	} {
		if got := as(c.role, c.method, c.path, c.body); got != c.status {
			t.Errorf("%s: %s %s: got %d, want %d", c.role, c.method, c.path, got, c.status)
		}
	}
}
