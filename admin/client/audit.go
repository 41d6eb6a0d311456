package client

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Audit offers the audit log of the node.
type Audit struct{ c *Client }

// Audit returns the audit log of the node.
func (c *Client) Audit() Audit { return Audit{c} }

// AuditQuery narrows a list of audit records. Zero fields do not narrow.
type AuditQuery struct {
	api.AuditFilter

	After string // AuditPage.Next of the previous page
	Limit int    // 1 to 500; zero: 50
}

// Query returns one page of records, newest first.
func (a Audit) Query(ctx context.Context, q AuditQuery) (api.AuditPage, error) {
	query := paging(q.After, q.Limit)
	for name, value := range q.Map() {
		query.Set(name, value)
	}
	return get[api.AuditPage](ctx, a.c, "/v1/audit", query)
}

// Get returns the record of one event.
func (a Audit) Get(ctx context.Context, id string) (api.AuditRecord, error) {
	return get[api.AuditRecord](ctx, a.c, "/v1/audit/"+api.Segment(id), nil)
}

// KPIs returns numbers of the audit log.
func (a Audit) KPIs(ctx context.Context) (api.AuditKPIs, error) {
	return get[api.AuditKPIs](ctx, a.c, "/v1/audit/kpis", nil)
}

// BySite returns numbers of the audit log for each site.
func (a Audit) BySite(ctx context.Context) (api.AuditBySite, error) {
	return get[api.AuditBySite](ctx, a.c, "/v1/audit/kpis/sites", nil)
}

// Export writes the records of a log to w, the oldest first, as "jsonl" or "csv". With an empty log it is
// the node's own. After an error, w has a part of the export.
func (a Audit) Export(ctx context.Context, f api.AuditFilter, log, format string, w io.Writer) error {
	query := f.Values()
	query.Set("format", format)
	if log != "" {
		query.Set("log", log)
	}
	resp, err := a.c.roundTrip(ctx, http.MethodGet, "/v1/audit/export", query, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode != http.StatusOK {
		return a.c.problemOf(resp)
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the export was cut off: %w", err)
	}
	return nil
}
