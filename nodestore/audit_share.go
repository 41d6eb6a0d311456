package nodestore

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	unsharedOwn  = `SELECT l.origin, e.seq, e.field, e.reason FROM hf_audit_erasure AS e JOIN hf_audit_log AS l ON l.log = e.log WHERE e.log > 0 AND l.own ORDER BY e.log, e.seq, e.field LIMIT $1 OFFSET $2`
	unsharedSite = `SELECT l.origin, e.seq, e.field, e.reason FROM hf_audit_log AS l JOIN hf_audit_erasure AS e ON e.log = l.log WHERE l.site = $3 ORDER BY l.log, e.seq, e.field LIMIT $1 OFFSET $2`
	unconfirmed  = `SELECT coalesce(max(l.site), ''), count(*), min(e.since) FROM hf_audit_erasure AS e JOIN hf_audit_log AS l ON l.log = e.log WHERE e.log > 0 GROUP BY e.log ORDER BY e.log`

	ownNamed   = `SELECT log FROM hf_audit_log WHERE origin = $1 AND own`
	copyNamed  = `SELECT log FROM hf_audit_log WHERE origin = $1 AND site = $2`
	dropShared = `DELETE FROM hf_audit_erasure WHERE log = $1 AND seq = $2 AND field = $3`
)

var _ audit.SharedStore = (*Audit)(nil)

// Unconfirmed implements audit.SharedStore.
func (a *Audit) Unconfirmed(ctx context.Context) (list []audit.Unconfirmed, err error) {
	if err := a.db.Read(ctx, unconfirmed, nil, func(scan side.Scan) error {
		var u audit.Unconfirmed
		var since int64
		err := scan(&u.Site, &u.Values, &since)
		u.Since = a.db.Time(rows.Instant(since))
		at := slices.IndexFunc(list, func(o audit.Unconfirmed) bool { return o.Site == u.Site })
		if at < 0 {
			list = append(list, u)
			return err
		}
		if list[at].Values += u.Values; u.Since.Before(list[at].Since) {
			list[at].Since = u.Since
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("count erasures that are not confirmed: %w", err)
	}
	return list, nil
}

// Unshared implements audit.SharedStore.
func (a *Audit) Unshared(ctx context.Context, site string, skip, limit int) (list []audit.Gone, err error) {
	text, args := unsharedOwn, []any{int64(limit), int64(skip)}
	if site != "" {
		text, args = unsharedSite, append(args, site)
	}
	if err := a.db.Read(ctx, text, args, func(scan side.Scan) error {
		var g audit.Gone
		var p audit.Place
		err := scan(&g.Origin, &p.Seq, &p.Field, &g.Reason)
		if n := len(list); n == 0 || list[n-1].Origin != g.Origin || list[n-1].Reason != g.Reason {
			list = append(list, g)
		}
		last := &list[len(list)-1]
		last.Places = append(last.Places, p)
		return err
	}); err != nil {
		return nil, fmt.Errorf("read erasures that are not confirmed: %w", err)
	}
	return list, nil
}

// Confirm implements audit.SharedStore.
func (a *Audit) Confirm(ctx context.Context, site string, list []audit.Gone) error {
	cost := side.Cost{LastRoom: true}
	for i := range list {
		cost.Rows += len(list[i].Places)
	}
	text := ownNamed
	if site != "" {
		text = copyNamed
	}
	if err := a.db.Change(ctx, cost, func(tx side.Tx) error {
		for i := range list {
			args := []any{list[i].Origin}
			if site != "" {
				args = append(args, site)
			}
			log := int64(0)
			if err := tx.Read(text, args, func(scan side.Scan) error { return scan(&log) }); err != nil {
				return err
			}
			for _, p := range list[i].Places {
				if _, err := tx.Exec(dropShared, log, p.Seq, p.Field); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("confirm erasures: %w", err)
	}
	return nil
}
