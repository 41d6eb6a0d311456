package admin

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/link"
)

// Overview returns how the node fares, with the numbers of its parts. A part whose numbers cannot be read hides
// no other.
func (n Node) Overview(ctx context.Context) api.Overview {
	o := api.Overview{Health: n.Health(), Lanes: n.lanes(), Outbox: n.OutboxStats(), Inbox: n.InboxStats()}
	part := func(name string, has bool, read func() error) {
		if has && read() != nil { // the refusal has logged why
			o.Unknown = append(o.Unknown, name)
		}
	}
	part("notifications", n.Notify != nil, func() error {
		k, err := Notifications{n.Service}.KPIs(ctx)
		if err == nil {
			o.Notifications = &k.All
		}
		return err
	})
	may := Granted(ctx)
	part("audit", n.Records != nil && may.Can(api.AuditRead), func() error {
		k, err := Audit{n.Service}.KPIs(ctx)
		if err == nil {
			o.Audit = &k
		}
		return err
	})
	part("sites", n.Central != nil, func() error {
		all, err := n.Central.Sites(ctx)
		if err != nil {
			return n.refuse(ctx, "count sites", err)
		}
		o.Sites = siteStates(all)
		return nil
	})
	part("siteCalls", n.Mirror != nil, func() error {
		all, err := SiteCalls{n.Service}.Counts(ctx)
		if err == nil {
			o.SiteCalls = sumOf(all.Counts)
		}
		return err
	})
	return o
}

// lanes returns the lanes that are not up or have messages, by name.
func (n Node) lanes() []api.LaneBrief {
	list, counts := []api.LaneBrief{}, maps.Clone(n.Outbox.Counts().Lanes)
	add := func(name, state, problem string) {
		c := counts[name]
		delete(counts, name)
		if state != "up" || c.Pending > 0 || c.Parked > 0 {
			list = append(list, api.LaneBrief{Name: name, Lane: state, Pending: c.Pending, Parked: c.Parked, Problem: problem})
		}
	}
	if n.Lanes != nil {
		for _, l := range n.Lanes() {
			add(l.Destination, laneState(l), l.Problem)
		}
	}
	for name, c := range counts {
		if c != (holdfast.LaneCounts{}) {
			add(name, "unknown", "")
		}
	}
	slices.SortFunc(list, func(a, b api.LaneBrief) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func siteStates(all []link.SiteInfo) *api.SiteStates {
	var s api.SiteStates
	for i := range all {
		switch all[i].State {
		case link.Online:
			s.Online++
		case link.Offline:
			s.Offline++
		case link.NeverSeen:
			s.Never++
		case link.Revoked:
		}
	}
	return &s
}

func sumOf(list []api.SiteCallCount) *api.SiteCallSums {
	var s api.SiteCallSums
	for _, c := range list {
		s.Waiting, s.Retrying, s.Parked, s.Stuck = s.Waiting+c.Waiting, s.Retrying+c.Retrying, s.Parked+c.Parked, s.Stuck+c.Stuck
	}
	return &s
}
