package nodestore

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/cursor"
	"github.com/holdfast-mq/holdfast/internal/search"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

// Each statement walks one index, from a place towards the past. What else the filter says is compared
// by the program, so that the time of a page has a bound.
const (
	auditColumnList = `at, log, seq, stored, channel, kind, status, failed, site, node, coalesce(instance, ''), coalesce(actor, ''), coalesce(corr, ''), leaf, hash FROM hf_audit WHERE `
	auditRange      = `at >= $1 AND (at, log, seq) < ($2, $3, $4)`
	auditOrder      = ` ORDER BY at DESC, log DESC, seq DESC LIMIT $5`

	auditByTime   = `SELECT ` + auditColumnList + auditRange + auditOrder
	auditByFault  = `SELECT ` + auditColumnList + `failed = TRUE AND ` + auditRange + auditOrder
	auditBySite   = `SELECT ` + auditColumnList + `site = $6 AND ` + auditRange + auditOrder
	auditByActor  = `SELECT ` + auditColumnList + `actor = $6 AND actor <> 'system' AND ` + auditRange + auditOrder
	auditByCorr   = `SELECT ` + auditColumnList + `corr = $6 AND ` + auditRange + auditOrder
	auditByTarget = `SELECT ` + auditColumnList + `target = $6 AND ` + auditRange + ` UNION ALL
		SELECT v.at, v.log, v.seq, a.stored, a.channel, a.kind, a.status, a.failed, a.site, a.node, coalesce(a.instance, ''), coalesce(a.actor, ''), coalesce(a.corr, ''), a.leaf, a.hash
		FROM hf_audit_value AS v CROSS JOIN hf_audit AS a WHERE a.log = v.log AND a.seq = v.seq AND v.field = 'target' AND v.value = $6
			AND v.at >= $1 AND (v.at, v.log, v.seq) < ($2, $3, $4)` + auditOrder

	// The two stores keep a UUID in different forms.
	auditByID = `SELECT ` + auditColumnList + `at = $1 AND id IN ($2, $3)`

	valuesOfRecord = `SELECT field, salt, value FROM hf_audit_value WHERE log = $1 AND seq = $2`

	countAudit       = `SELECT count(*) FROM (SELECT 1 FROM hf_audit WHERE at >= $1 LIMIT $2) AS x`
	countAuditFaults = `SELECT count(*) FROM (SELECT 1 FROM hf_audit WHERE failed = TRUE AND at >= $1 LIMIT $2) AS x`
	oldestAudit      = `SELECT at FROM hf_audit WHERE at > $1 ORDER BY at, log, seq LIMIT 1`
	newestAudit      = `SELECT at FROM hf_audit WHERE at > $1 ORDER BY at DESC, log DESC, seq DESC LIMIT 1`
)

var _ audit.Records = (*Audit)(nil)

// place is where a record stands in the order of a query.
type place struct{ at, log, seq int64 }

// bias makes times before 1970 positive numbers, as a cursor needs them.
const bias = 1 << 62

func (p place) cursor() string {
	return cursor.FormatPlace(min(max(p.at, -bias), bias-1)+bias, p.log, p.seq)
}

// lead returns the statement whose index leads to the fewest records, as far as one can tell, and what
// the index is asked for.
func lead(f *audit.Filter) (sql string, key []any) {
	actor := f.Actor != "" && f.Actor != audit.SystemActor // of most records; no index has it
	switch {
	case f.Target != "":
		return auditByTarget, []any{f.Target}
	case f.Correlation != "":
		return auditByCorr, []any{f.Correlation}
	case actor && !f.ErrorsOnly && !f.Status.IsError():
		return auditByActor, []any{f.Actor}
	case f.ErrorsOnly, f.Status != "" && f.Status.IsError():
		return auditByFault, nil
	case actor:
		return auditByActor, []any{f.Actor}
	case f.Site != "":
		return auditBySite, []any{f.Site}
	}
	return auditByTime, nil
}

// auditRow is a row of a walk.
type auditRow struct {
	place

	stored     int64
	record     audit.Record // what the filter looks at, but for the target, which an index has
	failed     bool
	leaf, hash []byte
}

func (r *auditRow) scan(scan side.Scan) error {
	var channel, kind, status string
	c := &r.record
	err := scan(&r.at, &r.log, &r.seq, &r.stored, &channel, &kind, &status, &r.failed, &c.Site, &c.Node, &c.Instance, &c.Actor, &c.Correlation, &r.leaf, &r.hash)
	c.Channel, c.Kind, c.Status, c.Occurred = audit.Channel(channel), audit.Kind(kind), audit.Status(status), time.UnixMicro(r.at)
	return err
}

// Query implements audit.Records.
func (a *Audit) Query(ctx context.Context, q audit.Query) (page audit.Page, err error) {
	if err = a.query(ctx, &q, &page); err != nil {
		return audit.Page{}, fmt.Errorf("query audit records: %w", err)
	}
	return page, nil
}

func (a *Audit) query(ctx context.Context, q *audit.Query, page *audit.Page) error {
	at, from := place{math.MaxInt64, math.MaxInt64, math.MaxInt64}, int64(math.MinInt64)
	if !q.From.IsZero() {
		from = microsUp(q.From)
	}
	if !q.Until.IsZero() {
		at = place{microsUp(q.Until), 0, 0}
	}
	if q.After != "" {
		p, err := cursor.ParsePlace(q.After, 3)
		if err != nil {
			return err
		}
		at = place{p[0] - bias, p[1], p[2]}
	}
	sql, key := lead(&q.Filter)
	rest := q.Filter
	rest.Target = ""
	origins, err := a.origins(ctx)
	if err != nil {
		return err
	}
	limit := min(max(q.Limit, 1), audit.MaxPage)
	for bound, step := search.Begin(), min(search.Step, limit+1); ; step = search.Step {
		found, err := a.step(ctx, sql, append([]any{from, at.at, at.log, at.seq, int64(step)}, key...))
		if err != nil {
			return err
		}
		for i := range found {
			r := &found[i]
			if rest.Match(&r.record) {
				if len(page.Records) == limit {
					page.Next, page.LookedUntil = at.cursor(), time.UnixMicro(at.at).UTC()
					return nil
				}
				f, err := a.found(ctx, r, origins)
				if err != nil {
					return err
				}
				page.Records = append(page.Records, f)
			}
			at = r.place
		}
		if len(found) < step {
			return nil
		}
		if bound.Over(search.Step) {
			page.Next, page.LookedUntil = at.cursor(), time.UnixMicro(at.at).UTC()
			return nil
		}
	}
}

// microsUp returns the first microsecond that is not before t.
func microsUp(t time.Time) int64 { return t.Add(time.Microsecond - time.Nanosecond).UnixMicro() }

func (a *Audit) step(ctx context.Context, sql string, args []any) (list []auditRow, err error) {
	err = a.db.Read(ctx, sql, args, func(scan side.Scan) error {
		var r auditRow
		err := r.scan(scan)
		r.leaf, r.hash = bytes.Clone(r.leaf), bytes.Clone(r.hash)
		list = append(list, r)
		return err
	})
	return list, err
}

// found returns the whole record of a row.
func (a *Audit) found(ctx context.Context, r *auditRow, origins map[int64]string) (f audit.Found, err error) {
	f = audit.Found{Origin: origins[r.log], Seq: r.seq, Stored: a.db.Time(rows.Instant(r.stored)), Hash: r.hash, Leaf: r.leaf}
	if bytes.Contains(r.leaf, []byte(`"sealed":`)) {
		if err := a.db.Read(ctx, valuesOfRecord, []any{r.log, r.seq}, func(scan side.Scan) error {
			var v audit.Value
			err := scan(&v.Field, &v.Salt, &v.Text)
			v.Salt = bytes.Clone(v.Salt)
			f.Values = append(f.Values, v)
			return err
		}); err != nil {
			return f, err
		}
	}
	if f.Record, err = audit.Read(r.leaf, f.Values); err != nil {
		return f, fmt.Errorf("record %d of %s: %w", r.seq, f.Origin, err)
	}
	f.Site = r.record.Site // see audit.SiteOf
	return f, nil
}

func (a *Audit) origins(ctx context.Context) (map[int64]string, error) {
	all := map[int64]string{}
	err := a.db.EachRow(ctx, rows.Range{Table: rows.Of((*rows.AuditLog)(nil))}, func(r rows.Row) error {
		l := r.(*rows.AuditLog) //nolint:forcetypeassert // asked for
		all[l.Log] = l.Origin
		return nil
	})
	return all, err
}

// Record implements audit.Records.
func (a *Audit) Record(ctx context.Context, id holdfast.ID) (f audit.Found, err error) {
	at, ok := audit.TimeOf(id)
	err = holdfast.ErrNotFound
	if ok {
		var found []auditRow
		u, _ := id.UUID()
		if found, err = a.step(ctx, auditByID, []any{at, u[:], append([]byte{1}, u[:]...)}); err == nil && len(found) == 0 {
			err = holdfast.ErrNotFound
		}
		if err == nil {
			var origins map[int64]string
			if origins, err = a.origins(ctx); err == nil {
				f, err = a.found(ctx, &found[0], origins)
			}
		}
	}
	if err != nil {
		return audit.Found{}, fmt.Errorf("audit record %s: %w", id, err)
	}
	return f, nil
}

// KPIs implements audit.Records.
func (a *Audit) KPIs(ctx context.Context, window time.Duration) (k audit.KPIs, err error) {
	one := func(sql string, args ...any) (n int64, some bool) {
		if err == nil {
			err = a.db.Read(ctx, sql, args, func(scan side.Scan) error {
				some = true
				return scan(&n)
			})
		}
		return n, some
	}
	at := func(sql string) (t time.Time) {
		if n, some := one(sql, int64(math.MinInt64)); some {
			t = time.UnixMicro(n).UTC()
		}
		return t
	}
	since := time.Now().Add(-window).UnixMicro()
	k.Records, _ = one(countAudit, since, int64(audit.MaxCount))
	k.Errors, _ = one(countAuditFaults, since, int64(audit.MaxCount))
	k.Oldest, k.Newest = at(oldestAudit), at(newestAudit)
	if err != nil {
		return audit.KPIs{}, fmt.Errorf("count audit records: %w", err)
	}
	return k, nil
}
