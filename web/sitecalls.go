package web

import (
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type siteCallList struct {
	Calls    []api.SiteCall
	Next     string
	Counts   []api.SiteCallCount
	Statuses []string
}

func (p *Pages) siteCalls(r *http.Request) (answer, error) {
	calls := admin.SiteCalls{Service: p.Service}
	data := &siteCallList{Statuses: []string{"submitted", "retrying", "delivered", "parked", "failed", "discarded", "expired"}}
	v := &view{template: "sitecalls", title: "Site calls", rail: "Site calls", live: true, data: data}
	from, to, err := period(r)
	if err != nil {
		return v.instead(err)
	}
	q := &admin.SiteCallQuery{
		Site: r.FormValue("site"), Node: r.FormValue("node"), Destination: r.FormValue("destination"), Category: r.FormValue("category"), Error: r.FormValue("error"),
		From: from, To: to, After: r.FormValue("after"), Limit: usualRows,
	}
	if s := r.FormValue("status"); s != "" {
		q.States = []string{s}
	}
	found, err := calls.List(r.Context(), q)
	if err != nil {
		return v.instead(err)
	}
	data.Calls, data.Next = found.Calls, found.Next
	if counts, err := calls.Counts(r.Context()); err == nil { // who may not see them sees none
		data.Counts = counts.Counts
	}
	return v, nil
}

type siteCallView struct {
	api.SiteCall

	Actions []action
	There   string // path of its message at the site
}

func (p *Pages) siteCall(r *http.Request) (answer, error) {
	c, err := admin.SiteCalls{Service: p.Service}.Get(r.Context(), r.PathValue("name"), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	data := &siteCallView{SiteCall: c, There: p.link("sites", c.Site, "messages", c.ID)}
	retry, discard := button(r, api.Operate, "Retry at the site", "retry", "main", data.There+"/retry"), asking(r, api.Operate, "Discard at the site", "trash", "danger", data.There+"/discard")
	if c.Ended != nil && c.Status == "delivered" {
		retry.Why, discard.Why = "a call that is delivered cannot be retried", "a call that is delivered cannot be discarded"
	}
	data.Actions = []action{retry, discard}
	return &view{template: "sitecall", title: "Call " + api.Clip(c.ID), rail: "Site calls", live: true, data: data}, nil
}
