package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/notify"
)

// notified keeps a notification with a copy for each channel.
func (f *fixture) notified(tb testing.TB, n notify.Notification, channels ...string) {
	tb.Helper()
	if n.List == "" {
		n.List = "ops"
	}
	if n.Origin.Site == "" {
		n.Origin.Site = "plant-7"
	}
	if err := f.store.Notified(tb.Context(), n, channels...); err != nil {
		tb.Fatal(err)
	}
}

// stands brings a copy into a state.
func stands(s holdfast.State, tries int) func(r *holdfast.Record) {
	return func(r *holdfast.Record) {
		r.State, r.Tries, r.Failures, r.LastError = s, tries, tries, "550 5.1.1 no such user"
		if s != holdfast.Pending {
			r.Settled = time.Now()
		}
	}
}

// NO-16, NO-18: operators find notifications by all that the page filters by.
func TestNotificationsAreNarrowedAndPaged(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.notified(t, notify.Notification{ID: "n1", Type: "alarm", Subject: "Pump 7 is hot", Origin: notify.Origin{Site: "north", Script: "pumps"}}, "mail", "teams")
	f.notified(t, notify.Notification{ID: "n2", Type: "report", List: "all", Subject: "Daily report", Origin: notify.Origin{Site: "south"}}, "mail")
	f.notified(t, notify.Notification{ID: "n3", Type: "alarm", Subject: "Pump 8 is HOT too"}, "mail")
	f.put(t, "n1", stands(holdfast.Parked, 10))
	f.put(t, "n1.teams", stands(holdfast.Delivered, 1))
	f.put(t, "n2", stands(holdfast.Pending, 3))
	f.put(t, "n2", func(r *holdfast.Record) { r.Created = r.Created.Add(-48 * time.Hour) })
	day := time.Now().UTC().Add(-24 * time.Hour).Format(time.DateOnly)
	cases := map[string]string{
		"":                                 "n3/mail n2/mail n1/teams n1/mail",
		"?status=parked":                   "n1/mail",
		"?status=parked,retrying":          "n2/mail n1/mail",
		"?status=pending&status=delivered": "n3/mail n1/teams",
		"?status=discarded":                "",
		"?channel=teams":                   "n1/teams",
		"?list=all":                        "n2/mail",
		"?type=alarm&channel=mail":         "n3/mail n1/mail",
		"?site=north":                      "n1/teams n1/mail",
		"?script=pumps":                    "n1/teams n1/mail",
		"?subject=hot%20pump":              "n3/mail n1/teams n1/mail",
		"?stuck=true":                      "n2/mail",
		"?from=" + day:                     "n3/mail n1/teams n1/mail",
		"?to=" + day:                       "n2/mail",
		"?to=" + day + "&from=2000-01-01T00:00:00Z": "n2/mail",
		"?limit=2":         "n3/mail n2/mail →",
		"?limit=2&after=3": "n1/teams n1/mail",
	}
	for query, want := range cases {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			page := ok[api.NotificationPage](t, f, call{method: "GET", path: "/v1/notifications" + query})
			var got []string
			for _, n := range page.Notifications {
				got = append(got, n.ID+"/"+n.Channel)
			}
			if page.Next != "" {
				got = append(got, "→")
			}
			if got := strings.Join(got, " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	for query, field := range map[string]string{
		"status=forwarding": "status", "status=lost": "status", "from=yesterday": "from", "to=2026-13-01": "to", "subject=%00": "subject",
		"list=%FF": "list", "site=a%0Ab": "site", "limit=501": "limit", "after=x": "after", "stuck=maybe": "stuck", "statu=parked": "statu",
	} {
		p := problem(t, f.do(t, call{method: "GET", path: "/v1/notifications?" + query}))
		if p.Status != 422 || len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: got %+v, want a fault of %s", query, p, field)
		}
	}
}

// NO-02, NO-04, NO-16: the detail has what a script is told at its top, and
// below it each copy with recipients and attempts.
func TestANotificationIsShownWithItsCopies(t *testing.T) {
	t.Parallel()
	f := serve(t)
	enqueued := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	f.notified(t, notify.Notification{
		ID: "n1", Type: "alarm", List: "ops", Subject: "Pump <7>", Body: "It is hot.\n", Data: []byte(`{"a": 1.0}`),
		Origin: notify.Origin{Site: "north", Instance: "i1", Script: "pumps", Execution: "e1", ParentExecution: "e0", Enqueued: enqueued},
	}, "mail", "teams")
	f.put(t, "n1", stands(holdfast.Delivered, 1))
	f.put(t, "n1.teams", stands(holdfast.Pending, 3))
	f.channels.Fares("teams", holdfast.LaneStatus{Held: true, Problem: "http_403"})
	f.store.Reach("n1",
		notify.Target{Channel: "mail", Address: "a@x", Name: "A", Result: notify.Accepted, Code: "250", Receipt: "q1", Attempts: 1, Server: "mx", TLS: "1.3", At: enqueued},
		notify.Target{Channel: "mail", Address: "b@x", Result: notify.Refused, Code: "550 5.1.1", Maybe: true, Attempts: 1},
		notify.Target{Channel: "mail", Address: "c@x"})
	d := ok[api.NotificationDetail](t, f, call{method: "GET", path: "/v1/notifications/n1"})
	if len(d.Copies) != 2 || d.Copies[0].WaitsFor != "" || d.Copies[1].WaitsFor != "channel teams is held (http_403): fix that, then resume the channel" {
		t.Fatalf("got %+v", d.Copies)
	}
	mail := d.Copies[0]
	want := []api.RecipientStatus{
		{Channel: "mail", Address: "a@x", Name: "A", Result: "accepted", Code: "250", Receipt: "q1", Attempts: 1, Server: "mx", TLS: "1.3", At: &enqueued},
		{Channel: "mail", Address: "b@x", Result: "refused", Code: "550 5.1.1", Maybe: true, Attempts: 1},
		{Channel: "mail", Address: "c@x", Result: "waiting"},
	}
	if diff := cmp.Diff(want, mail.Recipients); diff != "" || !mail.Partial || len(mail.History) == 0 {
		t.Errorf("got %+v (-want +got):\n%s", mail, diff)
	}
	created := d.Created
	d.Copies, d.Created = nil, nil
	wantHead := api.NotificationDetail{
		NotificationStatus: api.NotificationStatus{ID: "n1", Status: "retrying", Retries: 2, LastError: "550 5.1.1 no such user", Enqueued: &enqueued},
		Type:               "alarm", List: "ops",
		Subject: "Pump <7>", Body: "It is hot.\n", Site: "north", OriginInstance: "i1", SourceScript: "pumps", ExecutionID: "e1", ParentExecutionID: "e0", Data: []byte(`{"a": 1.0}`),
	}
	if diff := cmp.Diff(wantHead, d); diff != "" || created == nil {
		t.Errorf("created %v (-want +got):\n%s", created, diff)
	}
	problem(t, f.do(t, call{method: "GET", path: "/v1/notifications/nobody"}))
}

func TestTheStatusIsThatOfTheCopyThatIsWorst(t *testing.T) {
	t.Parallel()
	for want, states := range map[string][]holdfast.State{
		"delivered": {holdfast.Delivered, holdfast.Delivered},
		"discarded": {holdfast.Delivered, holdfast.Discarded},
		"parked":    {holdfast.Pending, holdfast.Parked},
		"pending":   {holdfast.Discarded, holdfast.Pending},
	} {
		f := serve(t)
		f.notified(t, notify.Notification{ID: "n"}, "a", "b")
		for i, id := range []holdfast.ID{"n", "n.b"} {
			f.put(t, id, stands(states[i], 0))
		}
		d := ok[api.NotificationDetail](t, f, call{method: "GET", path: "/v1/notifications/n"})
		if d.Status != want || (d.Delivered != nil) != (want == "delivered") {
			t.Errorf("%v: got %s, delivered %v, want %s", states, d.Status, d.Delivered, want)
		}
	}
}

// NO-16, F1-44, F1-80: each verb is about the copies that may become so, and leaves
// the others; NO-13: the history names the operator.
func TestWhatMayBeDecidedAboutCopies(t *testing.T) {
	t.Parallel()
	states := map[string]func(r *holdfast.Record){
		"parked": stands(holdfast.Parked, 10), "expired": stands(holdfast.Expired, 1), "delivered": stands(holdfast.Delivered, 1),
		"discarded": stands(holdfast.Discarded, 1), "pending": stands(holdfast.Pending, 0), "retrying": stands(holdfast.Pending, 2),
		"claimed": func(r *holdfast.Record) { r.State = holdfast.Claimed },
		"ending":  func(r *holdfast.Record) { r.State, r.Discarding = holdfast.Claimed, true },
	}
	channels := slices.Sorted(maps.Keys(states))
	for verb, c := range map[string]struct{ body, event, want string }{
		"retry":      {"", "requeued", "claimed pending; delivered delivered; discarded pending*; ending pending, discarding; expired pending*; parked pending*; pending pending; retrying retrying; "},
		"discard":    {`{"reason":"the alarm is over"}`, "discarded", "claimed pending*, discarding; delivered delivered; discarded discarded; ending pending, discarding; expired discarded*; parked discarded*; pending discarded*; retrying discarded*; "},
		"run":        {"", "rescheduled", "claimed pending*; delivered delivered; discarded discarded; ending pending, discarding; expired parked; parked parked; pending pending*; retrying retrying*; "},
		"reschedule": {`{"in":"2h"}`, "rescheduled", "claimed pending*; delivered delivered; discarded discarded; ending pending, discarding; expired parked; parked parked; pending pending*; retrying retrying*; "},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			f.notified(t, notify.Notification{ID: "n"}, channels...)
			for i, channel := range channels {
				id := holdfast.ID("n." + channel)
				if i == 0 {
					id = "n"
				}
				f.put(t, id, states[channel])
			}
			text := ""
			decided := ok[api.DecidedNotification](t, f, call{method: "POST", path: "/v1/notifications/n/" + verb, body: c.body})
			d := ok[api.NotificationDetail](t, f, call{method: "GET", path: "/v1/notifications/n"})
			for i, one := range decided.Copies {
				text += one.Channel + " " + one.Status
				if one.Changed {
					text += "*"
				}
				if one.Discarding {
					text += ", discarding"
				}
				text += "; "
				shown := &d.Copies[i]
				if shown.Status != one.Status || shown.Discarding != one.Discarding {
					t.Errorf("%s is shown as %s, discarding %t; the answer says %s, %t", one.Channel, shown.Status, shown.Discarding, one.Status, one.Discarding)
				}
				if last := shown.History[len(shown.History)-1]; one.Changed && (last.Event != c.event || last.Actor != api.Local || last.Error != "") {
					t.Errorf("%s: got %+v, want %s by local", one.Channel, last, c.event)
				}
			}
			if text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

// A decision about one copy leaves the others; one that no copy allows is refused,
// and named.
func TestADecisionAboutOneCopy(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.notified(t, notify.Notification{ID: "n"}, "mail", "ntfy", "teams")
	f.put(t, "n", stands(holdfast.Parked, 10))
	f.put(t, "n.ntfy", stands(holdfast.Delivered, 1))
	f.put(t, "n.teams", stands(holdfast.Parked, 10))
	post := func(verb, body string) call {
		return call{method: "POST", path: "/v1/notifications/n/" + verb, body: body}
	}
	got := ok[api.DecidedNotification](t, f, post("retry", `{"channel":"teams"}`)).Copies
	if got[0].Changed || got[0].Status != "parked" || got[1].Changed || !got[2].Changed || got[2].Status != "pending" {
		t.Errorf("got %+v", got)
	}
	later := ok[api.DecidedNotification](t, f, post("reschedule", `{"channel":"teams","in":"2h"}`)).Copies[2].NextAttempt
	if later == nil || time.Until(*later) < time.Hour {
		t.Errorf("rescheduled: it is tried at %v", later)
	}
	if now := ok[api.DecidedNotification](t, f, post("run", `{"channel":"teams"}`)).Copies[2].NextAttempt; now == nil || time.Until(*now) > time.Minute {
		t.Errorf("run: it is tried at %v", now)
	}
	for verb, want := range map[string]string{
		"retry": "only what is parked or discarded can be retried", "discard": "only what is pending, retrying or parked can be discarded",
		"run": "only what is pending or retrying can be rescheduled", "reschedule": "only what is pending or retrying can be rescheduled",
	} {
		at := ""
		if verb == "reschedule" {
			at = `,"in":"2h"`
		}
		p := problem(t, f.do(t, post(verb, `{"channel":"ntfy"`+at+`}`)))
		if p.Status != 409 || p.Type != "urn:holdfast:problem:state" || p.Errors[0].Value != "delivered" || p.Errors[0].Problem != want {
			t.Errorf("%s of what is delivered: got %+v", verb, p)
		}
		if p := problem(t, f.do(t, call{method: "POST", path: "/v1/notifications/nobody/" + verb, body: `{"channel":"ntfy"` + at + `}`})); p.Status != 404 {
			t.Errorf("%s of nothing: got %+v", verb, p)
		}
		if p := problem(t, f.do(t, post(verb, `{"channel":"fax"`+at+`}`))); p.Status != 422 {
			t.Errorf("%s over no channel: got %+v", verb, p)
		}
	}
	for verb, body := range map[string]string{"discard": `{"reason":"a\nb"}`, "reschedule": `{"channel":"teams"}`, "run": `{"in":"2h"}`} {
		if p := problem(t, f.do(t, post(verb, body))); p.Status != 422 {
			t.Errorf("%s %s: got %+v", verb, body, p)
		}
	}
}

// Two people press the button at once: the second is told, and changes nothing.
func TestADecisionThatComesSecondIsRefused(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) { s.Outbox = &overtaken{Outbox: s.Outbox} })
	f.notified(t, notify.Notification{ID: "n"}, "mail")
	f.put(t, "n", stands(holdfast.Parked, 10))
	p := problem(t, f.do(t, call{method: "POST", path: "/v1/notifications/n/retry"}))
	if p.Status != 409 || p.Errors[0].Value != "pending" {
		t.Errorf("got %+v, want a refusal that names the state", p)
	}
}

// overtaken retries a message just before it is retried.
type overtaken struct{ holdfast.Outbox }

func (o *overtaken) Requeue(ctx context.Context, id holdfast.ID, r holdfast.Requeue) (holdfast.Record, error) {
	if _, err := o.Outbox.Requeue(ctx, id, holdfast.Requeue{Actor: "somebody else"}); err != nil {
		return holdfast.Record{}, err
	}
	return o.Outbox.Requeue(ctx, id, r)
}

// A copy outlives its message: it is shown, and not decided about any more.
func TestACopyWhoseMessageIsPurged(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) { s.Outbox = purged{Outbox: s.Outbox} })
	f.notified(t, notify.Notification{ID: "n"}, "mail", "teams")
	f.put(t, "n", stands(holdfast.Discarded, 1))
	f.put(t, "n.teams", stands(holdfast.Parked, 1))
	p := problem(t, f.do(t, call{method: "POST", path: "/v1/notifications/n/retry", body: `{"channel":"mail"}`}))
	if p.Status != 409 || p.Errors[0].Value != "discarded, and its message has been purged" {
		t.Errorf("got %+v", p)
	}
	got := ok[api.DecidedNotification](t, f, call{method: "POST", path: "/v1/notifications/n/retry"}).Copies
	if got[0].Changed || got[0].Status != "discarded" || !got[1].Changed {
		t.Errorf("got %+v, want the other copy retried", got)
	}
}

// purged keeps the message n no more.
type purged struct{ holdfast.Outbox }

func (o purged) Requeue(ctx context.Context, id holdfast.ID, r holdfast.Requeue) (holdfast.Record, error) {
	if id == "n" {
		return holdfast.Record{}, holdfast.ErrNotFound
	}
	return o.Outbox.Requeue(ctx, id, r)
}

// The store fails between two copies: what was done is told, and to repeat is safe.
func TestHalfADecisionIsTold(t *testing.T) {
	t.Parallel()
	outbox := &breaking{}
	f := serve(t, func(s *httpapi.Server) { outbox.Outbox, s.Outbox = s.Outbox, outbox })
	f.notified(t, notify.Notification{ID: "n"}, "mail", "teams")
	f.put(t, "n", stands(holdfast.Parked, 10))
	f.put(t, "n.teams", stands(holdfast.Parked, 10))
	p := problem(t, f.do(t, call{method: "POST", path: "/v1/notifications/n/retry"}))
	if p.Status != 503 || !strings.HasPrefix(p.Detail, "the copies over mail were retried; then: ") {
		t.Errorf("got %+v", p)
	}
	outbox.broken = false
	got := ok[api.DecidedNotification](t, f, call{method: "POST", path: "/v1/notifications/n/retry"})
	if got.Copies[0].Changed || !got.Copies[1].Changed {
		t.Errorf("again: got %+v", got)
	}
}

// breaking fails after the first decision.
type breaking struct {
	holdfast.Outbox
	broken bool
}

func (o *breaking) Requeue(ctx context.Context, id holdfast.ID, r holdfast.Requeue) (holdfast.Record, error) {
	if o.broken {
		return holdfast.Record{}, holdfast.ErrClosed
	}
	out, err := o.Outbox.Requeue(ctx, id, r)
	o.broken = err == nil
	return out, err
}

// NO-17.
func TestKPIsAreOfAllAndOfEachSite(t *testing.T) {
	t.Parallel()
	f := serve(t)
	for i, state := range []holdfast.State{holdfast.Pending, holdfast.Pending, holdfast.Parked, holdfast.Delivered, holdfast.Delivered} {
		id := holdfast.ID(fmt.Sprint("n", i))
		f.notified(t, notify.Notification{ID: id, Origin: notify.Origin{Site: []string{"north", "south"}[i%2]}}, "mail")
		f.put(t, id, stands(state, i))
	}
	f.put(t, "n0", func(r *holdfast.Record) { r.Created = r.Created.Add(-11 * time.Minute) })
	f.put(t, "n4", func(r *holdfast.Record) { r.Settled = r.Settled.Add(-2 * time.Minute) })
	got := ok[api.NotificationKPIs](t, f, call{method: "GET", path: "/v1/notifications/kpis"})
	if age := got.All.OldestSeconds; age < 660 || age > 720 {
		t.Errorf("got an oldest of %g s, want 11 minutes", age)
	}
	got.All.OldestSeconds, got.Sites[0].OldestSeconds, got.Sites[1].OldestSeconds = 0, 0, 0
	want := api.NotificationKPIs{
		StuckAfter: "10m", Window: "1m", All: api.KPIs{Depth: 2, Stuck: 1, Parked: 1, Delivered: 1},
		Sites: []api.KPIs{{Site: "north", Depth: 1, Stuck: 1, Parked: 1}, {Site: "south", Depth: 1, Delivered: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A site has no lists, channels and central rows: the API says so.
func TestANodeThatDeliversNoNotificationsSaysSo(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) { s.Notify, s.Directory, s.Channels = nil, nil, nil })
	for _, c := range []call{
		{method: "GET", path: "/v1/notifications"},
		{method: "GET", path: "/v1/notifications/kpis"},
		{method: "GET", path: "/v1/notifications/n"},
		{method: "POST", path: "/v1/notifications/n/retry"},
		{method: "POST", path: "/v1/notifications/n/discard"},
		{method: "POST", path: "/v1/notifications/n/run"},
		{method: "POST", path: "/v1/notifications/n/reschedule", body: `{"in":"2h"}`},
		{method: "GET", path: "/v1/channels"},
		{method: "GET", path: "/v1/channels/c"},
		{method: "PUT", path: "/v1/channels/c", body: `{}`},
		{method: "DELETE", path: "/v1/channels/c"},
		{method: "POST", path: "/v1/channels/c/resume"},
		{method: "POST", path: "/v1/channels/c/test"},
		{method: "GET", path: "/v1/lists"},
		{method: "GET", path: "/v1/lists/l"},
		{method: "PUT", path: "/v1/lists/l", body: `{}`},
		{method: "DELETE", path: "/v1/lists/l"},
		{method: "PUT", path: "/v1/lists/l/recipients", body: `{}`},
		{method: "DELETE", path: "/v1/lists/l/recipients"},
		{method: "POST", path: "/v1/lists/l/recipients/import", body: `{}`},
	} {
		if p := problem(t, f.do(t, c)); p.Type != "urn:holdfast:problem:unsupported" {
			t.Errorf("%s %s: got %+v", c.method, c.path, p)
		}
	}
	half := &httpapi.Server{Service: &admin.Service{Notify: f.store}}
	if _, err := half.Handler(); err == nil || !strings.Contains(err.Error(), "Notify, Directory and Channels go together") {
		t.Errorf("got %v, want half a server refused", err)
	}
}

// What the store says does not reach the client.
func TestAFailingStoreOfNotificationsIsNotExplainedToClients(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.store.FailWith(errors.New("password=hunter2"))
	for _, path := range []string{"/v1/notifications", "/v1/notifications/kpis", "/v1/notifications/n", "/v1/channels", "/v1/lists"} {
		w := f.do(t, call{method: "GET", path: path})
		if p := problem(t, w); p.Status != 500 || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s: got %s", path, w.Body)
		}
	}
}

// F1-05: an id alone lists the notifications of all sites that have it, and
// names one only where one site has.
func TestSitesMayUseTheSameID(t *testing.T) {
	t.Parallel()
	f := serve(t)
	for _, site := range []string{"plant-7", "plant-8"} {
		f.notified(t, notify.Notification{ID: "tank-4", List: "ops", Subject: "of " + site, Origin: notify.Origin{Site: site}}, "mail")
	}
	p := problem(t, f.do(t, call{method: "GET", path: "/v1/notifications/tank-4"}))
	if p.Status != 409 || !strings.Contains(p.Detail, "plant-7, plant-8") {
		t.Errorf("got %+v", p)
	}
	for _, site := range []string{"plant-7", "plant-8"} {
		if d := ok[api.NotificationDetail](t, f, call{method: "GET", path: "/v1/notifications/tank-4?site=" + site}); d.Site != site || d.Subject != "of "+site {
			t.Errorf("of %s: got %+v", site, d)
		}
	}
	if p := problem(t, f.do(t, call{method: "POST", path: "/v1/notifications/tank-4/retry?site=plant-9"})); p.Status != 404 {
		t.Errorf("got %+v", p)
	}
	var sites []string
	for path := "/v1/notifications?id=tank-4&limit=1"; ; {
		page := ok[api.NotificationPage](t, f, call{method: "GET", path: path})
		for _, n := range page.Notifications {
			sites = append(sites, n.Site)
		}
		if page.Next == "" {
			break
		}
		path = "/v1/notifications?id=tank-4&limit=1&after=" + page.Next
	}
	if !slices.Equal(sites, []string{"plant-7", "plant-8"}) {
		t.Errorf("listed %v", sites)
	}
}
