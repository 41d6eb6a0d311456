package node

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/metrics"
)

// report is what a site's node tells central about itself, beyond what the link knows.
func (n *Node) report(context.Context) link.Health {
	own, doubt := n.health(), n.store.Doubt()
	h := link.Health{
		Node: n.cfg.Node.ID, Role: own.Role, Status: own.Status, Durability: n.store.Durability(),
		Doubted: doubt.Claimed, Held: doubt.Held, DiskFull: n.special.full != nil && n.special.full(),
	}
	for _, c := range own.Checks {
		if c.Status != api.OK {
			h.Problems = append(h.Problems, c.Name)
		}
	}
	if s := n.seen.Load(); s != nil {
		for _, f := range s.followers {
			h.Followers = append(h.Followers, link.FollowerLag{Name: f.Name, Behind: lag(f)})
		}
	}
	return h
}

// sitesHealth names the sites that are offline. That is news about them, and no fault of this node (AU-08).
func sitesHealth(list []link.SiteInfo, add addCheck) {
	var offline []string
	online := 0
	for i := range list {
		switch s := &list[i]; s.State {
		case link.Online:
			online++
		case link.Offline:
			offline = append(offline, fmt.Sprintf("%s for %s", s.Name, s.Silent.Round(time.Second)))
		case link.NeverSeen, link.Revoked:
		}
	}
	switch {
	case len(offline) > 0:
		add("sites", api.OK, fmt.Sprintf("%d online; offline: %s", online, brief.List(offline)))
	case online > 0:
		add("sites", api.OK, fmt.Sprintf("%d online", online))
	}
}

// measuredSites returns the numbers of a central's sites. Only sites that people have added have numbers of their own.
func (n *Node) measuredSites() metrics.Source {
	const online, offline, age, pending, parked = "holdfast_sites_online", "holdfast_sites_offline", "holdfast_site_silent_seconds", "holdfast_site_pending", "holdfast_site_parked"
	return metrics.Source{
		Metrics: []metrics.Metric{
			{Name: online, Help: "Sites that were heard in the last 180 s."},
			{Name: offline, Help: "Sites that were heard once, and not in the last 180 s."},
			{Name: age, Help: "How long ago a site was last heard.", Label: "site"},
			{Name: pending, Help: "Messages that wait at a site, as it last reported.", Label: "site"},
			{Name: parked, Help: "Messages that wait for a person at a site, as it last reported.", Label: "site"},
		},
		Read: func(see func(name string, value int64, label ...string)) {
			s := n.seen.Load()
			if s == nil || n.role.sites == nil {
				return
			}
			count := map[link.SiteState]int64{}
			for i := range s.sites {
				site := &s.sites[i]
				count[site.State]++
				if site.State == link.Online || site.State == link.Offline {
					h := site.Health()
					see(age, int64(site.Silent.Seconds()), site.Name)
					see(pending, h.Depth, site.Name)
					see(parked, h.Parked, site.Name)
				}
			}
			see(online, count[link.Online])
			see(offline, count[link.Offline])
		},
	}
}
