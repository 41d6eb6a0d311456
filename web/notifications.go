package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// notificationList is what the list of notifications shows.
type notificationList struct {
	Query    admin.NotificationQuery // as it was asked
	Status   string
	Statuses []string // to choose from
	Channels []string
	Lists    []string

	Rows        []notificationRow
	First, Next string // paths of pages; empty: there is none
	Narrowed    bool   // by a filter
	Bulk        []action
	Lacks       string // why the caller may not act on rows; empty: it may
}

// notificationRow is one copy of a notification in the list.
type notificationRow struct {
	api.Notification

	Href string
	Key  string // names the copy in a form
	Late string // what it said last, or why it was set aside
}

// notificationFilters are the parameters of the list that a bulk action takes as well, in both by the same name.
func notificationFilters() []string {
	return []string{"status", "channel", "list", "type", "site", "subject", "from", "to"}
}

func notificationQuery(q url.Values) admin.NotificationQuery {
	of := admin.NotificationQuery{
		ID: q.Get("id"), Channel: q.Get("channel"), List: q.Get("list"), Type: q.Get("type"), Site: q.Get("site"), Script: q.Get("script"),
		From: q.Get("from"), To: q.Get("to"), Subject: q.Get("subject"), Stuck: q.Get("stuck") != "", After: q.Get("after"), Limit: usualRows,
	}
	if s := q.Get("status"); s != "" {
		of.Status = []string{s}
	}
	return of
}

func (p *Pages) notifications(r *http.Request) (answer, error) {
	q := r.URL.Query()
	list := &notificationList{
		Query: notificationQuery(q), Status: q.Get("status"), Lacks: lacks(r),
		Statuses: []string{"pending", "retrying", "pending,retrying", "delivered", "parked", "discarded"},
	}
	v := &view{template: "notifications", title: "Notifications", rail: "Notifications", live: true, data: list}
	page, err := admin.Notifications{Service: p.Service}.List(r.Context(), &list.Query)
	if err != nil {
		v.status, v.said = problemOf(err).Status, refused(err)
		return v, err
	}
	list.Channels, list.Lists = p.directory(r)
	for i := range page.Notifications {
		list.Rows = append(list.Rows, p.notificationRow(&page.Notifications[i]))
	}
	list.First, list.Next = p.around(r.URL, page.Next)
	list.Narrowed = narrowed(q)
	if q.Get("id") == "" && q.Get("script") == "" && q.Get("stuck") == "" { // a bulk action has no such filter
		list.Bulk = p.bulkActions(r, "notifications", q, notificationFilters())
	}
	return v, nil
}

// directory returns the names of channels and lists that a filter may choose from, for who may see them.
func (p *Pages) directory(r *http.Request) (channels, lists []string) {
	if admin.Granted(r.Context()).Whole() {
		if all, err := (admin.Channels{Service: p.Service}).List(r.Context()); err == nil {
			for i := range all.Channels {
				channels = append(channels, all.Channels[i].Name)
			}
		}
		if all, err := (admin.Lists{Service: p.Service}).List(r.Context()); err == nil {
			for i := range all.Lists {
				lists = append(lists, all.Lists[i].Name)
			}
		}
	}
	return channels, lists
}

// around returns the paths of the first and the next page of a list, empty if there is none.
func (p *Pages) around(here *url.URL, after string) (first, next string) {
	u, q := *here, here.Query()
	if q.Get("after") != "" {
		q.Del("after")
		u.RawQuery = q.Encode()
		first = p.at(&u)
	}
	if after != "" {
		q.Set("after", after)
		u.RawQuery = q.Encode()
		next = p.at(&u)
	}
	return first, next
}

func (p *Pages) notificationRow(n *api.Notification) notificationRow {
	r := notificationRow{
		Notification: *n, Href: p.notificationLink(n.Site, n.ID), Late: n.LastError,
		Key: url.Values{"id": {n.ID}, "site": {n.Site}, "channel": {n.Channel}}.Encode(),
	}
	switch n.Status {
	case "delivered":
		r.Late = ""
	case "parked":
		if r.Late == "" {
			r.Late = strings.ReplaceAll(n.Reason, "_", " ")
		}
	}
	return r
}

// notificationLink returns the path of a notification, which its site and its id name.
func (p *Pages) notificationLink(site, id string, more ...string) string {
	return p.link(append([]string{"notifications", id}, more...)...) + "?" + url.Values{"site": {site}}.Encode()
}

// decideNotifications retries or discards the selected copies, one by one.
func (p *Pages) decideNotifications(r *http.Request) (answer, error) {
	keys, verb, reason := r.PostForm["id"], r.PostFormValue("verb"), reasonOf(r)
	next := p.local(r.PostFormValue("next"))
	switch {
	case len(keys) == 0:
		return nil, api.Faulty(api.Fault{Field: "id", Problem: "is missing: select at least one row"})
	case len(keys) > mostRows:
		return nil, api.Faulty(api.Fault{Field: "id", Problem: "is given too often: a page has at most 100 rows"})
	case !slices.Contains([]string{"retry", "discard"}, verb):
		return nil, api.Faulty(api.Fault{Field: "verb", Value: api.Clip(verb), Problem: "must be retry or discard"})
	case verb == "discard" && reason == "":
		return p.askDiscardSelected(r, keys, next)
	}
	done := 0
	var left []skipped
	for _, key := range keys {
		of, err := url.ParseQuery(key)
		if err == nil {
			err = p.decideOne(r, verb, of.Get("site"), of.Get("id"), of.Get("channel"), reason)
		}
		if err != nil {
			left = append(left, skipped{of.Get("id"), problemOf(err).Detail})
			continue
		}
		done++
	}
	t := told{with: []any{"verb", verb, "reason", api.Clip(reason), "done", done, "skipped", len(left), "ids", keys[:min(len(keys), 20)]}}
	if len(left) > 0 {
		t.answer = &view{template: "skipped", title: "Not all were changed", rail: "Notifications", data: struct {
			Done    int
			Skipped []skipped
			Next    string
		}{done, left, next}}
		return t, nil
	}
	t.answer = redirect(withQuery(next, "done", pastOf(verb), "rows", strconv.Itoa(done)))
	return t, nil
}

// askDiscardSelected asks before selected copies are discarded.
func (p *Pages) askDiscardSelected(r *http.Request, keys []string, next string) (answer, error) {
	q := &question{
		Ask: fmt.Sprintf("Discard %s?", countedAs(int64(len(keys)), "copy", "copies")), Text: "They are not tried any more. What is being tried ends with that attempt. The rows are kept for their retention, and a retry takes them up again.",
		Action: p.link("notifications", "selected"), Reason: true, Verb: "Discard " + countedAs(int64(len(keys)), "copy", "copies"), Back: next,
		Fields: []field{{"verb", "discard"}, {"next", next}},
	}
	for _, key := range keys {
		of, _ := url.ParseQuery(key) // what cannot be read is refused later
		q.Fields = append(q.Fields, field{"id", key})
		q.Items = append(q.Items, of.Get("id")+" from "+of.Get("site")+" over "+of.Get("channel"))
	}
	v := q.view("Notifications")
	if r.PostForm.Has("reason") {
		v.status, v.said = http.StatusUnprocessableEntity, refused(noReason())
	}
	return v, nil
}

func countedAs(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}
