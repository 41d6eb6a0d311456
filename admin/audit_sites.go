package admin

import (
	"context"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/link"
)

// telemetry returns how the audit logs of sites get to central: at central of all that may come, at a site of
// itself. The numbers of records are left to others.
func (a Audit) telemetry(ctx context.Context) (list []api.SiteAuditKPIs, err error) {
	if a.Shipping != nil {
		t := a.Shipping()
		return []api.SiteAuditKPIs{{Site: a.From(), Unsent: t.Backlog, UnsentSeconds: t.Lasts().Seconds(), Problem: t.Problem}}, nil
	}
	if a.Central == nil {
		return nil, nil
	}
	all, err := a.Central.Sites(ctx)
	for i := range all {
		s := &all[i]
		if s.State != link.Revoked {
			n, lasts, problem := s.Unsent()
			list = append(list, api.SiteAuditKPIs{Site: s.Name, Unsent: n, UnsentSeconds: lasts.Seconds(), Problem: problem})
		}
	}
	return list, err
}

// BySite returns numbers of the audit log for each site (AU-07).
func (a Audit) BySite(ctx context.Context) (out api.AuditBySite, err error) {
	out = api.AuditBySite{Window: "1h", Sites: []api.SiteAuditKPIs{}}
	list, err := a.telemetry(ctx)
	if err != nil {
		return out, a.refuse(ctx, "list sites", err)
	}
	var names []string
	for i := range list {
		if within(ctx, api.Object{Site: list[i].Site}) {
			out.Sites, names = append(out.Sites, list[i]), append(names, list[i].Site)
		}
	}
	counts, err := a.Records.SiteKPIs(ctx, auditWindow, names)
	if err != nil {
		return out, a.refuse(ctx, "count the audit log by site", err)
	}
	for i, k := range counts {
		of := &out.Sites[i]
		of.Records, of.Errors = k.Records, min(k.Errors, k.Records)
		of.ErrorRate = float64(k.Errors) / float64(max(k.Records, 1))
	}
	return out, nil
}
