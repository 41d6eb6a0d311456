package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
)

// overview is what the first page shows.
type overview struct {
	Status   string // of the node
	Started  any
	Concerns []concern
	Groups   []tileGroup
	Lanes    []lane
	More     int // lanes that are not shown
	Unknown  []string
}

// concern is something that waits for a person, with what helps.
type concern struct {
	State, What, Why string
	Href, Look       string // where to look at it
	Command          string // what helps; empty: looking is the first step
}

// tileGroup is a row of figures.
type tileGroup struct {
	Name  string
	Tiles []tile
}

// tile is one figure, which leads to what it counts.
type tile struct {
	Label, Value, Hint string
	Tone               string // red or amber, if it should not be so
	Href               string
	Spark              *spark
}

// lane is a lane in short, with where its messages are.
type lane struct {
	api.LaneBrief

	Href, Waiting, Set string // of it, of its waiting messages and its parked ones
}

// mostLanes is how many lanes the first page shows. Those that need somebody come first.
const mostLanes = 20

func (p *Pages) overview(r *http.Request) (answer, error) {
	ctx := r.Context()
	v := &view{template: "overview", title: "Overview", rail: "Overview", live: true}
	may := admin.Granted(ctx)
	if !may.Whole() { // its figures are about the whole node
		v.data = &overview{}
		return v, nil
	}
	o := admin.Node{Service: p.Service}.Overview(ctx)
	data := &overview{Status: o.Status, Started: o.Started, Concerns: p.concerns(&o), Groups: p.tiles(&o, p.lastDay(r)), Unknown: o.Unknown}
	data.Lanes, data.More = p.lanesOf(o.Lanes)
	v.data = data
	return v, nil
}

// list returns the path of the list of messages with a filter.
func (p *Pages) list(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return p.link("messages") + "?" + q.Encode()
}

// concerns lists what waits for a person, the worst first.
func (p *Pages) concerns(o *api.Overview) (list []concern) {
	found := map[string]string{} // what the checks say, by name
	for _, c := range o.Checks {
		found[c.Name] = c.Detail
	}
	for _, l := range o.Lanes {
		if l.Lane != "held" && l.Lane != "down" && l.Lane != "paused" {
			continue
		}
		kind, name := laneKind(l.Name)
		check := strings.TrimSuffix(kind, "s") + " " + name
		list = append(list, concern{
			State: l.Lane, What: check, Why: cmp.Or(strings.TrimPrefix(found[check], l.Lane+": "), l.Problem), Href: p.list("destination", l.Name), Look: "messages", Command: "holdfast " + kind + " resume " + shellQuote(name),
		})
		delete(found, check)
	}
	for _, c := range o.Checks {
		if _, left := found[c.Name]; left && c.Status != api.OK {
			list = append(list, concern{State: c.Status, What: c.Name, Why: c.Detail, Command: "holdfast status"})
		}
	}
	if o.Parked > 0 {
		list = append(list, concern{
			State: "parked", What: brief.Count(o.Parked, "message", "messages"), Why: "set aside for a person: retry or discard",
			Href: p.list("state", "parked"), Look: "messages", Command: "holdfast messages ls --state parked",
		})
	}
	rank := map[string]int{api.Failing: 0, "held": 1, "parked": 2, api.Degraded: 3, "down": 4}
	slices.SortStableFunc(list, func(a, b concern) int { return place(rank, a.State) - place(rank, b.State) })
	return list
}

func place(rank map[string]int, state string) int {
	if at, ok := rank[state]; ok {
		return at
	}
	return len(rank)
}

// tiles are the figures of the node: of NO-17 and AU-10 where it has them.
func (p *Pages) tiles(o *api.Overview, d day) []tileGroup {
	groups := []tileGroup{{"Messages", []tile{
		{Label: "Waiting", Value: grouped(o.Outbox.Pending), Hint: "pending", Href: p.list("state", "pending"), Spark: d.level("Waiting", func(m *api.Minute) int64 { return m.Waiting })},
		{Label: "Sending", Value: grouped(o.Outbox.Sending), Hint: "attempts under way", Href: p.list("state", "claimed")},
		{Label: "Parked", Value: grouped(o.Outbox.Failed), Hint: "for a person", Href: p.list("state", "parked"), Tone: warns("red", o.Outbox.Failed), Spark: d.level("Parked", func(m *api.Minute) int64 { return m.ParkedNow })},
		{Label: "Expired", Value: grouped(o.Outbox.Expired), Hint: "time to live ended", Href: p.list("state", "expired"), Tone: warns("amber", o.Outbox.Expired)},
	}}}
	if k := o.Notifications; k != nil {
		notified := func(name, value string) string { return withQuery(p.link("notifications"), name, value) }
		groups = append(groups, tileGroup{"Notifications", []tile{
			{Label: "Queue depth", Value: grouped(k.Depth), Hint: "pending and retrying", Href: notified("status", "pending,retrying"), Spark: d.level("Queue depth", func(m *api.Minute) int64 { return m.NotifyWaiting })},
			{Label: "Stuck", Value: grouped(k.Stuck), Hint: "waiting too long", Href: notified("stuck", "true"), Tone: warns("amber", k.Stuck)},
			{Label: "Parked", Value: grouped(k.Parked), Hint: "for a person", Href: notified("status", "parked"), Tone: warns("red", k.Parked), Spark: d.level("Parked", func(m *api.Minute) int64 { return m.NotifyParkedNow })},
			{Label: "Delivered", Value: grouped(k.Delivered), Hint: "in the last interval", Href: notified("status", "delivered"), Spark: d.rate("Delivered", func(m *api.Minute) int64 { return m.Notified })},
			{Label: "Oldest", Value: inSeconds(k.OldestSeconds), Hint: "longest wait", Href: notified("status", "pending,retrying")},
		}})
	}
	if s := o.Sites; s != nil {
		groups = append(groups, tileGroup{"Sites", []tile{
			{Label: "Online", Value: grouped(s.Online)},
			{Label: "Offline", Value: grouped(s.Offline), Tone: warns("amber", s.Offline)},
			{Label: "Never seen", Value: grouped(s.Never)},
		}})
	}
	if c := o.SiteCalls; c != nil {
		groups = append(groups, tileGroup{"Calls of sites", []tile{
			{Label: "Waiting", Value: grouped(c.Waiting)},
			{Label: "Retrying", Value: grouped(c.Retrying)},
			{Label: "Parked", Value: grouped(c.Parked), Tone: warns("red", c.Parked)},
			{Label: "Stuck", Value: grouped(c.Stuck), Tone: warns("amber", c.Stuck)},
		}})
	}
	if k := o.Audit; k != nil {
		groups = append(groups, tileGroup{"Audit log", []tile{
			{Label: "Records", Value: grouped(k.Records), Hint: "in " + k.Window},
			{Label: "Error rate", Value: fmt.Sprintf("%.1f %%", 100*k.ErrorRate), Hint: grouped(k.Errors) + " errors"},
			{Label: "Backlog", Value: inSeconds(k.BacklogSeconds), Hint: "behind events"},
		}})
	}
	return append(groups, tileGroup{"Inbox", []tile{
		{Label: "Received", Value: grouped(o.Inbox.Received), Hint: "since the start", Spark: d.rate("Received", func(m *api.Minute) int64 { return m.Received })},
		{Label: "Duplicates", Value: fmt.Sprintf("%.1f %%", 100*o.Inbox.DuplicateRate), Hint: grouped(o.Inbox.Duplicates) + " repeats"},
		{Label: "Kept", Value: grouped(o.Inbox.Kept), Hint: "wait to be fetched"},
	}})
}

// warns is the tone of a count that should be zero.
func warns(tone string, n int64) string {
	if n == 0 {
		return ""
	}
	return tone
}

// lanesOf returns the lanes that are shown: those that are not up, then those with the most waiting.
func (p *Pages) lanesOf(all []api.LaneBrief) (list []lane, more int) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b api.LaneBrief) int {
		up := func(l api.LaneBrief) int {
			if l.Lane == "up" {
				return 1
			}
			return 0
		}
		return cmp.Or(up(a)-up(b), cmp.Compare(b.Parked, a.Parked), cmp.Compare(b.Pending, a.Pending))
	})
	if len(all) > mostLanes {
		all, more = all[:mostLanes], len(all)-mostLanes
	}
	for _, l := range all {
		list = append(list, lane{LaneBrief: l, Href: p.list("destination", l.Name), Waiting: p.list("destination", l.Name, "state", "pending"), Set: p.list("destination", l.Name, "state", "parked")})
	}
	return list, more
}
