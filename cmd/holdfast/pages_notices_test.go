package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// noticesToSee gives a node channels, lists, notifications with a hostile subject, and a bulk action that is paused, and
// returns the paths of the pages that show them.
func noticesToSee(t *testing.T, node string) []string {
	t.Helper()
	send := func(method, path, body string) string { t.Helper(); return asks(t, method, node+path, body) }
	send(http.MethodPut, "/v1/channels/phone", fmt.Sprintf(`{"kind":"ntfy","settings":{"url":"http://%s","topic":"ops"},"retry":{"interval":"1h"}}`, freeAddress(t)))
	send(http.MethodPut, "/v1/channels/room", `{"kind":"ntfy","disabled":true,"settings":{"url":"https://ntfy.example","topic":"ops"}}`)
	send(http.MethodPut, "/v1/lists/ops", `{"description":"<script>alert(1)</script>","recipients":[{"channel":"phone","name":"Doe, Jane"},{"channel":"room","address":"second","disabled":true}]}`)
	send(http.MethodPut, "/v1/lists/nobody", `{"recipients":[]}`)
	hostile, err := json.Marshal("</a><script>alert(1)</script>\u202e" + strings.Repeat("long ", 180))
	if err != nil {
		t.Fatal(err)
	}
	for id, subject := range map[string]string{"alarm-1": `"Pump 7 is hot"`, "alarm-2": string(hostile)} {
		send(http.MethodPost, "/v1/notifications", fmt.Sprintf(`{"id":%q,"list":"ops","type":"alarm","subject":%s,"body":"It is hot.\n","data":{"big":9223372036854775807}}`, id, subject))
	}
	var action struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(send(http.MethodPost, "/v1/bulk", `{"list":"messages","verb":"discard","filter":{"destination":"spare"},"reason":"<b>over</b>","paused":true}`)), &action); err != nil {
		t.Fatal(err)
	}
	return []string{
		"/ui/notifications", "/ui/notifications?status=parked&subject=" + url.QueryEscape("<b>"), "/ui/notifications/alarm-1", "/ui/notifications/alarm-2", "/ui/notifications/alarm-1/discard", "/ui/parked",
		"/ui/channels", "/ui/channels/phone", "/ui/lists", "/ui/lists/ops", "/ui/lists/nobody/delete", "/ui/bulk", "/ui/bulk/" + action.ID, "/ui/bulk/" + action.ID + "/cancel",
		"/ui/bulk/new?of=messages&verb=retry&state=parked", "/ui/bulk/new?of=notifications&verb=discard",
	}
}
