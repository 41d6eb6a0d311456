package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// healthView is what the page of health shows.
type healthView struct {
	api.Overview

	Concerns []concern
	Groups   []tileGroup
	Sites    []siteHealth
	More     int // sites that are not shown
	Audited  bool
}

// siteHealth is how one site fares in all that this node knows of it.
type siteHealth struct {
	Name          string
	Site          *api.Site // nil: it is none of this node's
	Notifications *api.KPIs
	Audit         *api.SiteAuditKPIs
	Calls         api.SiteCallSums
}

// mostSites is how many sites the page of health shows. Those that need somebody come first.
const mostSites = 100

func (p *Pages) health(r *http.Request) (answer, error) {
	o := admin.Node{Service: p.Service}.Overview(r.Context())
	data := &healthView{Overview: o, Concerns: p.concerns(&o), Groups: p.tiles(&o, p.lastDay(r)), Audited: o.Audit != nil}
	data.Sites = p.siteHealth(r, &data.Unknown)
	if len(data.Sites) > mostSites {
		data.Sites, data.More = data.Sites[:mostSites], len(data.Sites)-mostSites
	}
	return &view{template: "health", title: "Health", rail: "Health", live: true, data: data}, nil
}

// siteHealth joins the numbers of all sites, the worst first. A part that cannot be read hides no other.
func (p *Pages) siteHealth(r *http.Request, unknown *[]string) []siteHealth {
	all := map[string]*siteHealth{}
	of := func(name string) *siteHealth {
		if all[name] == nil {
			all[name] = &siteHealth{Name: name}
		}
		return all[name]
	}
	part := func(name string, has bool, read func() error) {
		if has && read() != nil { // the refusal has logged why
			*unknown = append(*unknown, name+" by site")
		}
	}
	ctx := r.Context()
	part("sites", p.Central != nil, func() error {
		list, err := admin.Sites{Service: p.Service}.List(ctx)
		for i := range list.Sites {
			of(list.Sites[i].Name).Site = &list.Sites[i]
		}
		return err
	})
	part("notifications", p.Notify != nil, func() error {
		k, err := admin.Notifications{Service: p.Service}.KPIs(ctx)
		for i := range k.Sites {
			of(k.Sites[i].Site).Notifications = &k.Sites[i]
		}
		return err
	})
	may := admin.Granted(ctx)
	part("audit", p.Records != nil && may.Can(api.AuditRead), func() error {
		k, err := admin.Audit{Service: p.Service}.BySite(ctx)
		for i := range k.Sites {
			of(k.Sites[i].Site).Audit = &k.Sites[i]
		}
		return err
	})
	part("calls", p.Mirror != nil, func() error {
		k, err := admin.SiteCalls{Service: p.Service}.Counts(ctx)
		for _, c := range k.Counts { // of each of its nodes
			to := &of(c.Site).Calls
			to.Waiting, to.Retrying, to.Parked, to.Stuck = to.Waiting+c.Waiting, to.Retrying+c.Retrying, to.Parked+c.Parked, to.Stuck+c.Stuck
		}
		return err
	})
	list := make([]siteHealth, 0, len(all))
	for _, one := range all {
		if one.Site == nil || one.Site.State != "revoked" {
			list = append(list, *one)
		}
	}
	slices.SortFunc(list, func(a, b siteHealth) int {
		return cmp.Or(cmp.Compare(b.trouble(), a.trouble()), strings.Compare(a.Name, b.Name))
	})
	return list
}

// trouble says how much a site needs somebody.
func (s *siteHealth) trouble() (n int) {
	worse := func(is bool, by int) {
		if is {
			n += by
		}
	}
	if s.Site != nil {
		worse(s.Site.State == "offline", 8)
		worse(s.Site.Status == api.Failing, 4)
		worse(s.Site.Status == api.Degraded, 2)
		worse(s.Site.Parked > 0, 1)
	}
	if s.Notifications != nil {
		worse(s.Notifications.Stuck+s.Notifications.Parked > 0, 1)
	}
	if s.Audit != nil {
		worse(s.Audit.Problem != "", 2)
	}
	worse(s.Calls.Parked+s.Calls.Stuck > 0, 1)
	return n
}

type activityView struct {
	Activities   []api.Activity
	Next         int64
	Kinds        []string
	Destinations []string
}

func (p *Pages) activities(r *http.Request) (answer, error) {
	data := &activityView{Kinds: []string{"queued", "delivered", "retried", "parked", "retry", "discard", "disabled"}}
	v := &view{template: "activity", title: "Activity", rail: "Activity", live: true, data: data}
	for _, d := range (admin.Destinations{Service: p.Service}).List(r.Context()).Destinations {
		data.Destinations = append(data.Destinations, d.Name)
	}
	since, until, err := period(r)
	if err != nil {
		return v.instead(err)
	}
	after, err := numberOf(r, "after")
	if err != nil {
		return v.instead(err)
	}
	found, err := admin.Activity{Service: p.Service}.List(r.Context(), &admin.ActivityQuery{
		Kind: r.FormValue("kind"), Destination: r.FormValue("destination"), Message: r.FormValue("message"), Actor: r.FormValue("actor"), Since: since, Until: until,
	}, after, usualRows)
	if err != nil {
		return v.instead(err)
	}
	data.Activities, data.Next = found.Activities, found.Next
	return v, nil
}
