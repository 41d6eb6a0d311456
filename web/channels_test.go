package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// NO-11: a channel that is held says why and since when, and a person resumes it.
func TestAHeldChannelIsResumed(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	n.channels.Fares("mail", holdfast.LaneStatus{Held: true, Problem: "535 5.7.8 <b>bad</b>", Since: 90 * time.Minute, NextProbe: time.Minute, Failures: 1, Limit: 4})
	n.told(t, "n1", "Pump 7 is hot", holdfast.Parked, "mail")
	wants(t, body(t, n.get(t, "/ui/channels")), "held", "535 5.7.8 &lt;b&gt;bad&lt;/b&gt;", "1 h 30 min ago", "/ui/channels/mail/resume", "/ui/notifications?channel=mail&amp;status=parked")
	wants(t, body(t, n.get(t, "/ui/channels/mail")), "the fault is the channel", "Tried next", "10 attempts, 1m between two", "of 4 at once", "holdfast channels resume mail", "&#34;host&#34;")
	w := n.post(t, "/ui/channels/mail/resume", "")
	wantStatus(t, w.Code, http.StatusSeeOther)
	if to := w.Header().Get("Location"); to != "/ui/channels/mail?done=resumed" || len(n.channels.Resumed) != 1 {
		t.Errorf("leads to %s, resumed %v", to, n.channels.Resumed)
	}
	wantStatus(t, n.get(t, "/ui/channels/none").Code, http.StatusNotFound)
	wantStatus(t, n.post(t, "/ui/channels/none/resume", "").Code, http.StatusNotFound)
}

// A test says what the other side said, and nothing of it is kept.
func TestAChannelIsTested(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	n.channels.Answer(notify.Report{Server: "mx.example.com:587", TLS: "TLS 1.3", To: []notify.Delivery{{Outcome: notify.Accepted, Code: "250 2.0.0", Text: "queued", Receipt: "4ZK"}}})
	w := n.post(t, "/ui/channels/mail/test", "address=jane%40example.com")
	wantStatus(t, w.Code, http.StatusOK)
	wants(t, body(t, w), "The other side has taken the test.", "mx.example.com:587", "TLS 1.3", "250 2.0.0", "4ZK", "accepted", `value="jane@example.com"`)
	n.channels.Answer(notify.Report{Fault: &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "535 5.7.8"}})
	wants(t, body(t, n.post(t, "/ui/channels/mail/test", "address=jane%40example.com")), "The channel itself is at fault", "535 5.7.8", "lane fault")
	n.channels.Answer(notify.Report{To: []notify.Delivery{{Outcome: notify.Refused, Code: "550"}}})
	wants(t, body(t, n.post(t, "/ui/channels/mail/test", "address=jane%40example.com")), "refuses it")
	w = n.post(t, "/ui/channels/mail/test", "address=jane")
	wantStatus(t, w.Code, http.StatusUnprocessableEntity)
	wants(t, body(t, w), "is not a mail address", `value="jane"`)
}

// A list shows who would get a notification now, and why others would not.
func TestAListSaysWhoIsReached(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	n.channels.Fares("phone", holdfast.LaneStatus{Held: true, Problem: "http_403"})
	must(t, n.memory.PutChannel(t.Context(), notify.Channel{Name: "old", Kind: "ntfy", Settings: []byte(`{"host":"x"}`), Disabled: true}, "ana"))
	wants(t, body(t, n.get(t, "/ui/lists")), "ops", "who is on call", "1 disabled", "mail, phone", "/ui/notifications?list=ops")
	wants(t, body(t, n.get(t, "/ui/lists/ops")), "1 reached, 1 wait for their channel, 1 disabled", "Doe, Jane", "jane@example.com", "channel phone is held: http_403", "it is disabled on this list")
	wantStatus(t, n.get(t, "/ui/lists/none").Code, http.StatusNotFound)
}

// Lists are made, changed and removed by forms, which keep what was typed.
func TestListsAreEdited(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Everything())
	leads := func(path string, form url.Values, to string) {
		t.Helper()
		w := n.post(t, path, form.Encode())
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != to {
			t.Fatalf("%s: status %d to %s: %s", path, w.Code, w.Header().Get("Location"), body(t, w))
		}
	}
	leads("/ui/lists", url.Values{"name": {"night"}, "description": {"at night"}}, "/ui/lists/night?done=saved")
	w := n.post(t, "/ui/lists", "name=ops&description=again")
	wantStatus(t, w.Code, http.StatusPreconditionFailed)
	wants(t, body(t, w), "exists already", `value="again"`)
	wantStatus(t, n.post(t, "/ui/lists", "name=a+b").Code, http.StatusUnprocessableEntity)

	leads("/ui/lists/night/recipients", url.Values{"channel": {"mail"}, "address": {"kim@example.com"}, "name": {"Kim"}}, "/ui/lists/night?done=saved")
	w = n.post(t, "/ui/lists/night/recipients", "channel=mail&address=kim&name=Kim")
	wantStatus(t, w.Code, http.StatusUnprocessableEntity)
	wants(t, body(t, w), "is not a mail address", `value="kim"`)
	kim := url.Values{"channel": {"mail"}, "address": {"kim@example.com"}}
	leads("/ui/lists/night/recipients/disable", kim, "/ui/lists/night?done=saved")
	w = n.post(t, "/ui/lists/night/recipients", kim.Encode()) // it would lose its name, and be enabled again
	wantStatus(t, w.Code, http.StatusConflict)
	wants(t, body(t, w), "is on the list already")
	wants(t, body(t, n.get(t, "/ui/lists/night")), "1 disabled", "/recipients/enable", ">Enable<", "Kim")
	leads("/ui/lists/night/recipients/enable", kim, "/ui/lists/night?done=saved")
	wants(t, body(t, n.get(t, "/ui/lists/night")), "/recipients/disable", ">Disable<", "Kim")
	wantStatus(t, n.post(t, "/ui/lists/night/recipients/disable", "channel=mail&address=none%40example.com").Code, http.StatusNotFound)
	leads("/ui/lists/night/recipients/import", url.Values{"channel": {"mail"}, "text": {"\"Doe, Jane\" <jane@example.com>\n"}}, "/ui/lists/night?done=saved")
	w = n.post(t, "/ui/lists/night/recipients/import", url.Values{"channel": {"mail"}, "text": {"a@b\nno address\n"}}.Encode())
	wantStatus(t, w.Code, http.StatusUnprocessableEntity)
	wants(t, body(t, w), "line 2", "no address")

	page := body(t, n.get(t, "/ui/lists/night"))
	_, rest, _ := strings.Cut(page, `name="version" value="`)
	version, _, _ := strings.Cut(rest, `"`)
	edit := url.Values{"version": {version}, "description": {"new"}, "partial": {"true"}}
	leads("/ui/lists/night", edit, "/ui/lists/night?done=saved")
	edit.Set("description", "newer")
	wantStatus(t, n.post(t, "/ui/lists/night", edit.Encode()).Code, http.StatusPreconditionFailed) // somebody was faster
	wants(t, body(t, n.get(t, "/ui/lists/night/recipients/remove?channel=mail&address=kim%40example.com")), "Remove this recipient?", "kim@example.com over mail")
	leads("/ui/lists/night/recipients/remove", url.Values{"channel": {"mail"}, "address": {"kim@example.com"}}, "/ui/lists/night?done=saved")
	wantStatus(t, n.post(t, "/ui/lists/night/recipients/remove", "channel=mail&address=kim%40example.com").Code, http.StatusNotFound)

	page = body(t, n.get(t, "/ui/lists/night/delete"))
	wants(t, page, "Delete list night?", "1 recipient")
	_, rest, _ = strings.Cut(page, `name="version" value="`)
	version, _, _ = strings.Cut(rest, `"`)
	wantStatus(t, n.post(t, "/ui/lists/night/delete", "version=old").Code, http.StatusPreconditionFailed)
	leads("/ui/lists/night/delete", url.Values{"version": {version}}, "/ui/lists?done=deleted")
	wantStatus(t, n.get(t, "/ui/lists/night").Code, http.StatusNotFound)
}
