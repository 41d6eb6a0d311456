package admin

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
)

// AuditRecords is what a store keeps of audit logs.
type AuditRecords interface {
	audit.SharedStore
}

// ExportAudit is the operation whose entry Export writes.
const ExportAudit = audit.CodeExport

// Audit offers the records of the audit log.
type Audit struct{ *Service }

// Query returns a page of records, newest first.
func (a Audit) Query(ctx context.Context, in *api.AuditFilter, after string, limit int) (out api.AuditPage, err error) {
	if p := ofSite(ctx, in); p != nil {
		return out, p
	}
	filter, faults := filterOf(in)
	if faults = append(faults, checkLine("after", after, mostText)...); len(faults) > 0 {
		return out, api.Faulty(faults...)
	}
	page, err := a.Records.Query(ctx, audit.Query{Filter: filter, After: after, Limit: limit})
	if err != nil {
		return out, a.refuse(ctx, "query the audit log", err)
	}
	out = api.AuditPage{Records: make([]api.AuditRecord, len(page.Records)), Next: page.Next, LookedUntil: page.LookedUntil, Filter: in.Map()}
	for i := range page.Records {
		out.Records[i] = auditRecordOf(&page.Records[i])
	}
	return out, nil
}

// ofSite refuses a caller whose scope does not have all that the filter finds: such a caller names one site.
func ofSite(ctx context.Context, in *api.AuditFilter) *api.Problem {
	if !within(ctx, api.Object{Site: in.Site}) {
		return outside("site", in.Site)
	}
	return nil
}

// filterOf reads a filter.
func filterOf(in *api.AuditFilter) (f audit.Filter, faults []api.Fault) {
	for name, value := range in.Map() {
		faults = append(faults, checkLine(name, value, audit.MaxText)...)
	}
	f = audit.Filter{
		Site: in.Site, Node: in.Node, Instance: in.Instance, Actor: in.Actor, Target: in.Target, Channel: audit.Channel(in.Channel), Kind: audit.Kind(in.Kind),
		Status: audit.Status(in.Status), Correlation: in.CorrelationID, ErrorsOnly: in.Errors,
	}
	var wrong []api.Fault
	f.From, wrong = instantOf("from", in.From)
	faults = append(faults, wrong...)
	f.Until, wrong = instantOf("to", in.To)
	return f, append(faults, wrong...)
}

func auditRecordOf(f *audit.Found) api.AuditRecord {
	return api.AuditRecord{
		ID: string(f.ID), Occurred: f.Occurred.UTC(), Channel: string(f.Channel), Kind: string(f.Kind), Status: string(f.Status),
		CorrelationID: f.Correlation, ExecutionID: f.Execution, ParentExecutionID: f.Parent, TraceID: f.Trace,
		Site: f.Site, Node: f.Node, Instance: f.Instance, Script: f.Script, Actor: f.Actor, Target: f.Target,
		HTTPStatus: f.HTTP, DurationMs: float64(f.Took.Microseconds()) / 1000, Error: f.Error, Request: f.Request, Response: f.Response,
		Extra: f.Extra, Erased: f.Erased, Log: f.Origin, Seq: f.Seq, Hash: hex.EncodeToString(f.Hash),
	}
}

// Get returns one record by the id of its event.
func (a Audit) Get(ctx context.Context, id string) (out api.AuditRecord, err error) {
	f, err := a.find(ctx, id)
	if err != nil {
		return out, err
	}
	return auditRecordOf(&f), nil
}

// find returns a record that the caller may see.
func (a Audit) find(ctx context.Context, text string) (f audit.Found, err error) {
	id, p := parseID(text)
	if p != nil {
		return f, p
	}
	f, err = a.Records.Record(ctx, id)
	if err == nil && !within(ctx, api.Object{Site: f.Site}) {
		err = holdfast.ErrNotFound // an answer must not tell which ids there are
	}
	if errors.Is(err, holdfast.ErrNotFound) {
		return f, api.NotFound.Problem(fmt.Sprintf("the audit log has no record %s; GET /v1/audit lists those that it has", id), api.Fault{Field: "id", Value: string(id), Problem: "is not kept here"})
	}
	if err != nil {
		return f, a.refuse(ctx, "read the audit record", err)
	}
	return f, nil
}

// auditWindow is the time for which KPIs count records.
const auditWindow = time.Hour

// KPIs returns numbers of the audit log (AU-07).
func (a Audit) KPIs(ctx context.Context) (out api.AuditKPIs, err error) {
	k, err := a.Records.KPIs(ctx, auditWindow)
	late := time.Duration(0)
	if err == nil {
		late, err = a.AuditLag(ctx)
	}
	if err != nil {
		return out, a.refuse(ctx, "count the audit log", err)
	}
	return api.AuditKPIs{
		Window: "1h", Records: k.Records, Errors: k.Errors, ErrorRate: float64(k.Errors) / float64(max(k.Records, 1)),
		BacklogSeconds: late.Seconds(), WriteFailures: a.AuditFailures(), Oldest: k.Oldest, Newest: k.Newest,
	}, nil
}

// Export prepares an export of the node's own log, or of the one that is named, as it is now. The
// export is on record before write writes anything; if it cannot be recorded, there is none.
func (a Audit) Export(ctx context.Context, in *api.AuditFilter, name, format string) (write func(w io.Writer) error, err error) {
	if p := ofSite(ctx, in); p != nil {
		return nil, p
	}
	filter, faults := filterOf(in)
	if len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	x := &audit.Exporter{Reader: a.Records, Filter: filter, CSV: format == "csv"}
	if err := x.Begin(ctx, name); errors.Is(err, holdfast.ErrNotFound) {
		return nil, api.NotFound.Problem(fmt.Sprintf("this node keeps no audit log %q", api.Clip(name)), api.Fault{Field: "log", Value: api.Clip(name), Problem: "is not the name of a log here"})
	} else if err != nil {
		return nil, a.refuse(ctx, "export the audit log", err)
	}
	if err := a.Called(ctx, audit.CodeExport, x.Origin(), nil, "filter", in.Map(), "format", format, "until", x.Until()); err != nil {
		return nil, api.Unavailable.Problem("the export cannot be recorded in the audit log now, so nothing is exported; ask again later").With("Retry-After", "30")
	}
	return func(w io.Writer) error {
		err := x.Write(ctx, w)
		if err != nil {
			a.Log().LogAttrs(ctx, slog.LevelWarn, "export of the audit log cut off", slog.Any("error", err))
		}
		return err
	}, nil
}
