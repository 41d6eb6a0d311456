package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/admintest"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/web"
)

// notices is pages of a node that tells people things.
type notices struct {
	*site

	memory   *admintest.Memory
	channels *admintest.Channels
}

// tells returns pages with two channels and a list.
func tells(t *testing.T, may api.Grant, change ...func(*web.Settings, *admin.Service)) *notices {
	t.Helper()
	n := &notices{memory: &admintest.Memory{}, channels: &admintest.Channels{}}
	with := func(_ *web.Settings, s *admin.Service) {
		s.Outbox, s.Enqueuer, s.Inbox, s.Notify, s.Directory, s.Channels = n.memory, n.memory, n.memory, n.memory, n.memory, n.channels
	}
	n.site = serve(t, may, append([]func(*web.Settings, *admin.Service){with}, change...)...)
	for _, c := range []notify.Channel{{Name: "mail", Kind: "email", Settings: []byte(`{"host":"mx"}`)}, {Name: "phone", Kind: "ntfy", Settings: []byte(`{"host":"ntfy"}`)}} {
		must(t, n.memory.PutChannel(t.Context(), c, "ana"))
	}
	must(t, n.memory.PutList(t.Context(), notify.List{Name: "ops", Description: "who is on call", Recipients: []notify.Recipient{
		{Channel: "mail", Address: "jane@example.com", Name: "Doe, Jane"}, {Channel: "phone", Address: "alerts"}, {Channel: "mail", Address: "off@example.com", Disabled: true},
	}}, "ana"))
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// told keeps a notification from site north, with a copy for each channel, and brings the copy of the first into
// a state.
func (n *notices) told(t *testing.T, id holdfast.ID, subject string, state holdfast.State, channels ...string) {
	t.Helper()
	must(t, n.memory.Notified(t.Context(), notify.Notification{
		ID: id, Type: "alarm", List: "ops", Subject: subject, Body: "It is hot.\n", Data: []byte(`{"n":9223372036854775807}`),
		Origin: notify.Origin{Site: "north", Script: "pumps", Enqueued: time.Now().Add(-time.Minute)},
	}, channels...))
	must(t, n.memory.Change(id, func(r *holdfast.Record) {
		r.State = state
		if state != holdfast.Pending {
			r.Tries, r.Failures, r.LastError, r.Settled = 3, 3, "550 5.1.1 no such user", time.Now()
			r.Reason = holdfast.ReasonPermanent
		}
	}))
}

// state returns the state of a message.
func (n *notices) state(t *testing.T, id holdfast.ID) string {
	t.Helper()
	r, err := n.memory.Get(t.Context(), id)
	must(t, err)
	return r.State.String()
}

func wantsNone(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("the page has %q", text)
		}
	}
}

func wantStatus(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Fatalf("got status %d, want %d", got, want)
	}
}

// NO-18, U23: the filters are in the address, and the list is narrowed by them.
func TestNotificationsAreFilteredByTheAddress(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	n.told(t, "n1", "Pump 7 is hot", holdfast.Parked, "mail")
	n.told(t, "n2", `a/b.c+d"é <script>`, holdfast.Pending, "phone")
	must(t, n.memory.Change("n2", func(r *holdfast.Record) { r.Created = r.Created.Add(-time.Hour) }))
	page := body(t, n.get(t, "/ui/notifications"))
	wants(t, page, "Pump 7 is hot", "a/b.c&#43;d&#34;é &lt;script&gt;", "stuck", "550 5.1.1 no such user", "over mail")
	for query, want := range map[string]string{
		"status=parked": "n1", "channel=phone": "n2", "subject=pump+HOT": "n1", "stuck=true": "n2", "site=north&status=pending": "n2", "id=n1": "n1", "status=pending,retrying": "n2",
	} {
		page := body(t, n.get(t, "/ui/notifications?"+query))
		other := map[string]string{"n1": "n2", "n2": "n1"}[want]
		wants(t, page, "/ui/notifications/"+want+"?site=north")
		wantsNone(t, page, "/ui/notifications/"+other+"?site=north")
	}
	w := n.get(t, "/ui/notifications?status=nonsense")
	wantStatus(t, w.Code, http.StatusUnprocessableEntity)
	wants(t, body(t, w), "Not done", "one of pending")
	wants(t, body(t, n.get(t, "/ui/notifications?list=none")), "No notification fits these filters.")
}

// A notification has one story: from its site to each recipient, with what a person can do.
func TestANotificationTellsItsStory(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	n.told(t, "n1", "Pump 7 is hot", holdfast.Parked, "mail", "phone")
	n.memory.Reach("n1",
		notify.Target{Channel: "mail", Address: "a@x", Result: notify.Accepted, Code: "250", Receipt: "q1", Attempts: 1, Server: "mx:25", TLS: "TLS 1.3", At: time.Now()},
		notify.Target{Channel: "mail", Address: "b@x", Result: notify.Deferred, Code: "451", Maybe: true, Attempts: 1})
	w := n.get(t, "/ui/notifications/n1?site=north")
	wantStatus(t, w.Code, http.StatusOK)
	wants(t, body(t, w), "Pump 7 is hot", "Taken from its author", "at north", "Came here", "over mail", "a@x", "mx:25", "q1", "It may have been delivered.",
		"1 of 2 recipients have accepted", "A retry asks only those who have not accepted: 1 recipient.", "It is hot.", "9223372036854775807", "holdfast notifications retry n1 --site north")
	wantStatus(t, n.get(t, "/ui/notifications/n9?site=north").Code, http.StatusNotFound)
}

// Buttons act by a form and lead back; a discard is asked about first, and needs a reason (U18).
func TestANotificationIsRetriedAndDiscarded(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	n.told(t, "n1", "Pump 7 is hot", holdfast.Parked, "mail")
	w := n.post(t, "/ui/notifications/n1/retry?site=north", "")
	wantStatus(t, w.Code, http.StatusSeeOther)
	if to := w.Header().Get("Location"); to != "/ui/notifications/n1?done=retried&site=north" || n.state(t, "n1") != "pending" {
		t.Errorf("leads to %s; the copy is %s", to, n.state(t, "n1"))
	}
	w = n.post(t, "/ui/notifications/n1/retry?site=north", "") // U35
	wantStatus(t, w.Code, http.StatusConflict)
	wants(t, body(t, w), "Not done", "is pending", "Pump 7 is hot")

	w = n.get(t, "/ui/notifications/n1/discard?site=north")
	wantStatus(t, w.Code, http.StatusOK)
	wants(t, body(t, w), "Discard this notification?", `name="reason" required`)
	w = n.post(t, "/ui/notifications/n1/discard?site=north", "")
	if wantStatus(t, w.Code, http.StatusUnprocessableEntity); n.state(t, "n1") != "pending" {
		t.Error("it was discarded without a reason")
	}
	w = n.post(t, "/ui/notifications/n1/discard?site=north", "reason=the+alarm+is+over")
	if wantStatus(t, w.Code, http.StatusSeeOther); n.state(t, "n1") != "discarded" {
		t.Errorf("the copy is %s", n.state(t, "n1"))
	}
	e := n.calls.list[len(n.calls.list)-1]
	if e.Code != "decide-notification" || e.Actor != "ana" || !strings.Contains(string(e.Detail), "the alarm is over") {
		t.Errorf("the audit log has %+v", e)
	}
}

// Selected rows are done one by one, and what was skipped is said.
func TestSelectedNotifications(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	n.told(t, "n1", "Pump 7 is hot", holdfast.Parked, "mail")
	n.told(t, "n2", "Pump 8 is hot", holdfast.Delivered, "mail")
	key := func(id string) string { return url.QueryEscape("channel=mail&id=" + id + "&site=north") }
	w := n.post(t, "/ui/notifications/selected", "verb=discard&next=%2Fui%2Fnotifications%3Fsite%3Dnorth&id="+key("n1"))
	wantStatus(t, w.Code, http.StatusOK)
	wants(t, body(t, w), "Discard 1 copy?", "n1 from north over mail")
	w = n.post(t, "/ui/notifications/selected", "verb=retry&next=%2Fui%2Fnotifications%3Fsite%3Dnorth&id="+key("n1")+"&id="+key("n2"))
	wantStatus(t, w.Code, http.StatusOK)
	wants(t, body(t, w), "1 changed, 1 skipped", "n2", "is delivered")
	if n.state(t, "n1") != "pending" {
		t.Errorf("n1 is %s", n.state(t, "n1"))
	}
	w = n.post(t, "/ui/notifications/selected", "verb=discard&reason=over&next=%2Fui%2Fnotifications%3Fsite%3Dnorth&id="+key("n1"))
	wantStatus(t, w.Code, http.StatusSeeOther)
	if to := w.Header().Get("Location"); to != "/ui/notifications?done=discarded&rows=1&site=north" {
		t.Errorf("leads to %s", to)
	}
	wantStatus(t, n.post(t, "/ui/notifications/selected", "verb=retry").Code, http.StatusUnprocessableEntity)
}

// U15, U16: what the caller may not do is shown, disabled, with the reason, and refused when it is posted.
func TestAReaderOnlyLooks(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Grant{Rights: []api.Right{api.Read}})
	n.told(t, "n1", "Pump 7 is hot", holdfast.Parked, "mail")
	const why = "needs the right operate, which ana does not have"
	for _, path := range []string{"/ui/notifications", "/ui/notifications/n1?site=north", "/ui/channels/mail"} {
		wants(t, body(t, n.get(t, path)), why, "disabled")
	}
	wants(t, body(t, n.get(t, "/ui/lists/ops")), "needs the right admin, which ana does not have")
	for _, path := range []string{
		"/ui/notifications/n1/retry?site=north", "/ui/notifications/selected", "/ui/channels/mail/test", "/ui/channels/mail/resume", "/ui/bulk", "/ui/lists/ops", "/ui/lists/ops/delete", "/ui/lists/ops/recipients",
		"/ui/lists/ops/recipients/remove", "/ui/lists/ops/recipients/import", "/ui/bulk/x/pause", "/ui/bulk/x/cancel",
	} {
		before := len(n.calls.list)
		if w := n.post(t, path, ""); w.Code != http.StatusForbidden || len(n.calls.list) != before+1 {
			t.Errorf("%s: status %d, %d entries", path, w.Code, len(n.calls.list)-before)
		}
	}
	if n.state(t, "n1") != "parked" {
		t.Errorf("n1 is %s", n.state(t, "n1"))
	}
}

// Who is only for a site sees what it sent, and neither channels, lists nor bulk actions.
func TestAScopeKeepsToItsSite(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Grant{Rights: []api.Right{api.Read, api.Operate}, Scope: api.Scope{Sites: []string{"south"}}})
	n.told(t, "n1", "Pump 7 is hot", holdfast.Parked, "mail")
	wantsNone(t, body(t, n.get(t, "/ui/notifications")), "Pump 7 is hot")
	for _, path := range []string{"/ui/notifications/n1?site=north", "/ui/channels", "/ui/channels/mail", "/ui/lists", "/ui/lists/ops", "/ui/bulk", "/ui/bulk/new?of=notifications&verb=retry"} {
		wantStatus(t, n.get(t, path).Code, http.StatusForbidden)
	}
	wantStatus(t, n.post(t, "/ui/notifications/n1/retry?site=north", "").Code, http.StatusForbidden)
}
