package nodestore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/rows"
)

const callColumns = ` site, id, node, category, destination, endpoint, status, retries, coalesce(last_error, ''), coalesce(http, 0),
	coalesce(instance, ''), coalesce(script, ''), coalesce(execution, ''), created, coalesce(attempted, 0), coalesce(ended, 0), seen FROM hf_sitecall `

const (
	oneCall       = `SELECT` + callColumns + `WHERE site = $1 AND id = $2`
	callsOfAll    = `SELECT` + callColumns + `WHERE (created, site, id) < ($1, $2, $3) ORDER BY created DESC, site DESC, id DESC LIMIT $4`
	callsOfSite   = `SELECT` + callColumns + `WHERE site = $5 AND (created, site, id) < ($1, $2, $3) ORDER BY created DESC, id DESC LIMIT $4`
	callsOfStatus = `SELECT` + callColumns + `WHERE status = $5 AND (created, site, id) < ($1, $2, $3) ORDER BY created DESC, site DESC, id DESC LIMIT $4`

	callCounts = `SELECT site, node, status, count(*), sum(CASE WHEN created < $1 THEN 1 ELSE 0 END) FROM hf_sitecall
		WHERE ended IS NULL AND site > '' GROUP BY site, node, status ORDER BY site, node, status`

	oldestCall = `SELECT seen FROM hf_sitecall WHERE ended IS NOT NULL AND seen < hf_now() ORDER BY seen LIMIT 1`
	purgeCalls = `DELETE FROM hf_sitecall WHERE (site, id) IN (SELECT site, id FROM hf_sitecall WHERE ended IS NOT NULL AND seen < hf_now() - $1 ORDER BY seen LIMIT 500)`
)

// SiteCalls shows what sites have said of their operations.
type SiteCalls struct{ db side.Store }

var _ sites.Calls = (*SiteCalls)(nil)

// putCalls writes the calls that are newer than what is here. Another machine wrote their texts.
func putCalls(tx side.Tx, site string, epoch int64, calls []sites.Call) error {
	line := func(s string) string { return shown.Line(s, holdfast.MaxNameLen) }
	var list []rows.Row
	for i := range calls {
		c := &calls[i]
		id, err := holdfast.ParseID(string(c.ID))
		if err != nil {
			continue
		}
		list = append(list, &rows.SiteCall{
			Site: site, ID: string(id), Epoch: epoch, Revision: c.Revision, Node: line(c.Node), Category: line(string(c.Category)), Destination: line(c.Destination), Endpoint: line(c.Endpoint),
			Status: line(c.Status), Retries: max(c.Retries, 0), LastError: shown.Line(c.LastError, 1000), HTTP: c.HTTP, Instance: line(c.Instance), Script: line(c.Script), Execution: line(c.Execution),
			Created: max(c.Created, 0), Attempted: max(c.Attempted, 0), Ended: max(c.Ended, 0), Seen: rows.Now,
		})
	}
	if len(list) == 0 {
		return nil
	}
	return tx.Put(list...)
}

func (s *SiteCalls) scan(scan side.Scan) (c sites.SiteCall, err error) {
	var id, category string
	var seen int64
	err = scan(&c.Site, &id, &c.Node, &category, &c.Destination, &c.Endpoint, &c.Status, &c.Retries, &c.LastError, &c.HTTP,
		&c.Instance, &c.Script, &c.Execution, &c.Created, &c.Attempted, &c.Ended, &seen)
	c.ID, c.Category, c.Seen = holdfast.ID(id), holdfast.Category(category), s.db.Time(rows.Instant(seen))
	return c, err
}

// SiteCall implements sites.Calls.
func (s *SiteCalls) SiteCall(ctx context.Context, site string, id holdfast.ID) (c sites.SiteCall, err error) {
	err = s.db.Read(ctx, oneCall, []any{site, string(id)}, func(scan side.Scan) (err error) {
		c, err = s.scan(scan)
		return err
	})
	if err == nil && c.Site == "" {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return c, fmt.Errorf("read call %s of site %.64q: %w", id, site, err)
	}
	return c, nil
}

// callsRead is how many rows one page reads at most, and how many at once.
const (
	callsRead   = 5000
	callsAtOnce = 500
)

// SiteCalls implements sites.Calls.
func (s *SiteCalls) SiteCalls(ctx context.Context, f *sites.CallFilter) (p sites.CallPage, err error) {
	after := sites.CallPlace{Created: 1 << 62}
	if !f.To.IsZero() {
		after.Created = f.To.UnixMicro()
	}
	if f.After != nil {
		after = *f.After
	}
	sql, by := callsOfAll, ""
	switch {
	case f.Site != "":
		sql, by = callsOfSite, f.Site
	case len(f.Statuses) == 1:
		sql, by = callsOfStatus, f.Statuses[0]
	}
	for range callsRead / callsAtOnce {
		n, full := 0, false
		args := []any{after.Created, after.Site, string(after.ID), int64(callsAtOnce)}
		if by != "" {
			args = append(args, by)
		}
		if err := s.db.Read(ctx, sql, args, func(scan side.Scan) error {
			c, err := s.scan(scan)
			if n++; err != nil || full {
				return err
			}
			after = sites.CallPlace{Created: c.Created, Site: c.Site, ID: c.ID}
			if shows(f, &c) {
				p.Calls = append(p.Calls, c)
			}
			full = len(p.Calls) == f.Limit
			return nil
		}); err != nil {
			return sites.CallPage{}, fmt.Errorf("list calls of sites: %w", err)
		}
		if full {
			p.Next = &after
			return p, nil
		}
		if n < callsAtOnce || !f.From.IsZero() && after.Created < f.From.UnixMicro() {
			return p, nil
		}
	}
	p.Next = &after // a page that has read enough may be short, and even empty
	return p, nil
}

func shows(f *sites.CallFilter, c *sites.SiteCall) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return is(f.Site, c.Site) && is(f.Node, c.Node) && is(f.Destination, c.Destination) && is(string(f.Category), string(c.Category)) &&
		(len(f.Statuses) == 0 || slices.Contains(f.Statuses, c.Status)) &&
		(f.From.IsZero() || c.Created >= f.From.UnixMicro()) && (f.To.IsZero() || c.Created < f.To.UnixMicro()) &&
		(f.Error == "" || strings.Contains(strings.ToLower(c.LastError), strings.ToLower(f.Error)))
}

// CallCounts implements sites.Calls.
func (s *SiteCalls) CallCounts(ctx context.Context, stuckBefore time.Time) (list []sites.CallCount, err error) {
	if err := s.db.Read(ctx, callCounts, []any{stuckBefore.UnixMicro()}, func(scan side.Scan) error {
		var c sites.CallCount
		err := scan(&c.Site, &c.Node, &c.Status, &c.Count, &c.Old)
		list = append(list, c)
		return err
	}); err != nil {
		return nil, fmt.Errorf("count calls of sites: %w", err)
	}
	return list, nil
}

// PurgeCalls implements sites.Calls.
func (s *SiteCalls) PurgeCalls(ctx context.Context, kept time.Duration) (purged int64, err error) {
	clock, err := s.db.Clock(ctx)
	for err == nil {
		seen := rows.None
		err = s.db.Read(ctx, oldestCall, nil, func(scan side.Scan) error { return scan((*int64)(&seen)) })
		if err != nil || seen == rows.None || clock.Judge(seen+rows.Instant(rows.Micros(kept)), kept) != belief.Over {
			break
		}
		var n int64
		err = s.db.Change(ctx, side.Cost{Rows: 500}, func(tx side.Tx) (err error) {
			n, err = tx.Exec(purgeCalls, rows.Micros(kept))
			return err
		})
		if purged += n; n == 0 {
			break
		}
	}
	if err != nil {
		return purged, fmt.Errorf("purge calls of sites: %w", err)
	}
	return purged, nil
}
