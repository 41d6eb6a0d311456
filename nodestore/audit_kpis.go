package nodestore

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
)

const (
	countOfSite  = `SELECT count(*) FROM (SELECT 1 FROM hf_audit WHERE site = $1 AND at >= $2 LIMIT $3) AS x`
	sitesOfFault = `SELECT site FROM hf_audit WHERE failed = TRUE AND at >= $1 LIMIT $2`
)

// SiteKPIs implements audit.Records.
func (a *Audit) SiteKPIs(ctx context.Context, window time.Duration, sites []string) ([]audit.SiteKPIs, error) {
	since := time.Now().Add(-window).UnixMicro()
	faults := map[string]int64{}
	err := a.db.Read(ctx, sitesOfFault, []any{since, int64(audit.MaxCount)}, func(scan side.Scan) error {
		var site string
		err := scan(&site)
		faults[site]++
		return err
	})
	list := make([]audit.SiteKPIs, len(sites))
	for i, site := range sites {
		list[i] = audit.SiteKPIs{Site: site, Errors: faults[site]}
		if err == nil {
			err = a.db.Read(ctx, countOfSite, []any{site, since, int64(audit.MaxCount)}, func(scan side.Scan) error { return scan(&list[i].Records) })
		}
	}
	if err != nil {
		return nil, fmt.Errorf("count audit records by site: %w", err)
	}
	return list, nil
}
