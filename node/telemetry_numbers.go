package node

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/metrics"
)

// unsentLate is how long an audit record waits at a site until health mentions it. A site sends each second.
const unsentLate = 10 * time.Minute

// shipping returns how the audit log of a site gets to central.
func shipping(central *link.Site) func() link.Telemetry {
	return func() link.Telemetry { return central.Status().Telemetry }
}

// unsent says what waits of an audit log.
func unsent(records int64, lasts time.Duration) string {
	text := brief.Count(records, "record", "records") + " of the audit log wait"
	if lasts > 0 {
		text += fmt.Sprintf(", the oldest for %s", lasts.Round(time.Second))
	}
	return text
}

// telemetryHealth names the sites whose audit logs do not come to central. If central refuses one, somebody must
// look at it; that one waits is news about the site.
func telemetryHealth(list []link.SiteInfo, add addCheck) {
	var refused, late []string
	for i := range list {
		s := &list[i]
		switch n, lasts, problem := s.Unsent(); {
		case s.Telemetry.Problem != "":
			refused = append(refused, s.Name+": "+problem)
		case lasts > unsentLate:
			late = append(late, s.Name+": "+unsent(n, lasts))
		}
	}
	switch {
	case len(refused) > 0:
		add("audit of sites", api.Degraded, "refused: "+brief.List(refused)+"; the sites keep it")
	case len(late) > 0:
		add("audit of sites", api.OK, brief.List(late))
	}
}

// unconfirmedLate is how long an erasure may wait for the other end of a link before the health report says so.
const unconfirmedLate = 24 * time.Hour

// erasedHealth says which other ends have not confirmed what was erased here. A site may be away for weeks: that is no fault.
func erasedHealth(list []audit.Unconfirmed, add addCheck) {
	var late []string
	for _, u := range list {
		if time.Since(u.Since) > unconfirmedLate {
			late = append(late, fmt.Sprintf("%s: %s since %s", cmp.Or(u.Site, "central"), brief.Count(u.Values, "value", "values"), u.Since.UTC().Format(time.RFC3339)))
		}
	}
	if len(late) > 0 {
		add("erasures", api.OK, "erased here, not yet confirmed by "+brief.List(late))
	}
}

// measuredTelemetry returns the numbers of what has not come to central: at a site of itself, at central of all.
func (n *Node) measuredTelemetry() metrics.Source {
	const backlog, oldest, fault = "holdfast_telemetry_backlog", "holdfast_telemetry_oldest_seconds", "holdfast_telemetry_problem"
	return metrics.Source{
		Metrics: []metrics.Metric{
			{Name: backlog, Help: "Records of its audit log that a site has and central lacks; all that it has until central has said what it lacks.", Label: "site"},
			{Name: oldest, Help: "How long the oldest of them has waited.", Label: "site"},
			{Name: fault, Help: "1 if central did not get or take the last of them, else 0.", Label: "site"},
		},
		Read: func(see func(name string, value int64, label ...string)) {
			show := func(site string, records int64, lasts time.Duration, problem string) {
				bad := int64(0)
				if problem != "" {
					bad = 1
				}
				see(backlog, records, site)
				see(oldest, int64(lasts.Seconds()), site)
				see(fault, bad, site)
			}
			if n.role.shipping != nil {
				t := n.role.shipping()
				show(n.cfg.Source(), t.Backlog, t.Lasts(), t.Problem)
			}
			if s := n.seen.Load(); s != nil {
				for i := range s.sites {
					if site := &s.sites[i]; site.State == link.Online || site.State == link.Offline {
						records, lasts, problem := site.Unsent()
						show(site.Name, records, lasts, problem)
					}
				}
			}
		},
	}
}
