package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// parks keeps a message that is parked by an error.
func (n *notices) parks(t *testing.T, id holdfast.ID, to, code, said string) {
	t.Helper()
	_, err := n.memory.Enqueue(t.Context(), holdfast.Message{ID: id, Source: "plant-4", Destination: to, Endpoint: "E"})
	must(t, err)
	must(t, n.memory.Change(id, func(r *holdfast.Record) {
		r.State, r.Reason, r.Settled, r.Tries, r.LastAttempt = holdfast.Parked, holdfast.ReasonPermanent, time.Now(), 1, time.Now()
		r.LastCode, r.LastError = code, said
	}))
}

// Parked messages stand together by what their errors have in common, and a group is retried or discarded as one
// bulk action, which leaves other causes alone.
func TestParkedMessagesStandByCause(t *testing.T) {
	t.Parallel()
	n, run := many(t, 0)
	for i := range 12 {
		n.parks(t, holdfast.ID(fmt.Sprintf("m%02d", i)), "erp", "http_422", fmt.Sprintf("order %d is unknown <b>", 4700+i))
	}
	n.parks(t, "other", "erp", "http_409", "it is closed\u202e")
	n.told(t, "n1", "Pump 7 is hot", holdfast.Parked, "mail")
	page := body(t, n.get(t, "/ui/parked"))
	wants(t, page, "12 messages", "1 message", "is unknown &lt;b&gt;", "http_422", "it is closed⟨U+202E⟩", "/ui/destinations/erp", "channel mail", "/ui/channels/mail", "/ui/messages/m11", "Retry the newest 10", "newest")
	wantsNone(t, page, "order 4711", "<b>")
	_, rest, _ := strings.Cut(page, "http_422")
	_, rest, _ = strings.Cut(rest, `href="/ui/bulk/new?`)
	query, _, _ := strings.Cut(rest, `"`)
	query = strings.ReplaceAll(query, "&amp;", "&")
	wants(t, query, "cause=", "destination=erp", "state=parked", "verb=retry", "of=messages")
	page = body(t, n.get(t, "/ui/bulk/new?"+query))
	wants(t, page, "12 can be retried", "cause: ", "destination: erp")
	run(begun(t, n, query))
	if n.state(t, "m00") != "pending" || n.state(t, "other") != "parked" || n.state(t, "n1") != "parked" {
		t.Errorf("got %s, %s and %s", n.state(t, "m00"), n.state(t, "other"), n.state(t, "n1"))
	}
	wants(t, body(t, n.get(t, "/ui/parked?destination=channel:mail")), "destination: channel:mail", "1 message", "Show all")
	wants(t, body(t, n.get(t, "/ui/parked?destination=nobody")), "Nothing is parked.")
}

// Who may only look sees the groups and the buttons, with the reason why they are disabled.
func TestCausesOfAReader(t *testing.T) {
	t.Parallel()
	n := tells(t, api.Grant{Rights: []api.Right{api.Read}, Scope: api.Scope{Destinations: []string{"erp"}}})
	n.parks(t, "m1", "erp", "http_422", "order 4711 is unknown")
	n.parks(t, "m2", "other", "http_500", "not for ana")
	w := n.get(t, "/ui/parked")
	wantStatus(t, w.Code, http.StatusOK)
	page := body(t, w)
	wants(t, page, "1 message", "http_422")
	wantsNone(t, page, "not for ana", "other")
}

// A list of messages is searched by what people know of them, and leads to a bulk action over what is found.
func TestMessagesAreSearched(t *testing.T) {
	t.Parallel()
	n, _ := many(t, 0)
	n.parks(t, "m1", "erp", "http_422", "order 4711 is unknown")
	n.parks(t, "m2", "erp", "http_500", "the plant is closed")
	page := body(t, n.get(t, "/ui/messages?error=plant+CLOSED&state=parked"))
	wants(t, page, "/ui/messages/m2", "All that these filters find", "/ui/bulk/new?error=plant&#43;CLOSED&amp;of=messages&amp;state=parked&amp;verb=retry", `value="plant CLOSED"`)
	wantsNone(t, page, `href="/ui/messages/m1"`)
	wants(t, body(t, n.get(t, "/ui/messages?code=http_422")), "/ui/messages/m1")
	page = body(t, n.get(t, "/ui/messages?key=k"))
	wants(t, page, "No message fits these filters.")
	wantsNone(t, page, "/ui/bulk/new")
	w := n.get(t, "/ui/messages?from=yesterday")
	wantStatus(t, w.Code, http.StatusUnprocessableEntity)
	wants(t, body(t, w), "Not done", "is not an instant")
}
