package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type auditInput struct {
	api.AuditFilter

	After string `query:"after" maxLength:"256" doc:"The value next of the previous page."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"The largest number of records."`
}

type exportInput struct {
	api.AuditFilter

	Log    string `query:"log" doc:"The log to export. Absent: the node's own."`
	Format string `query:"format" enum:"jsonl,csv" default:"jsonl" doc:"jsonl can be verified without the node; csv is for tables."`
}

type auditRecordInput struct {
	ID string `path:"id" doc:"The id of the event."`
}

// auditing adds the routes of the audit log.
func auditing(b *builder) {
	log := admin.Audit{Service: b.Service}
	proving(b)
	keeping(b)
	handle(b, route{
		method: http.MethodGet, path: "/v1/audit", id: "query-audit", content: true, tag: "audit", right: api.AuditRead, scoped: true,
		summary: "Query the audit log",
		description: "Newest first. A page takes a moment at most: where no index leads to what is asked for, it has what was found until then, " +
			"says how far it looked, and next goes on from there. A token for some sites names one of them as site.",
	}, func(ctx context.Context, in *auditInput) (*answer[api.AuditPage], error) {
		return answerOf(log.Query(ctx, &in.AuditFilter, in.After, in.Limit))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/audit/kpis", id: "audit-kpis", tag: "audit", right: api.AuditRead,
		summary: "Numbers of the audit log", description: "How much was recorded in the last hour, how much of it is an error, and how far the log is behind.",
	}, func(ctx context.Context, _ *struct{}) (*answer[api.AuditKPIs], error) {
		return answerOf(log.KPIs(ctx))
	})
	auditBySite(b, log)
	handle(b, route{
		method: http.MethodGet, path: "/v1/audit/export", id: admin.ExportAudit, tag: "audit", right: api.AuditExport, scoped: true, slow: true,
		summary: "Export an audit log",
		description: "All records that the log has at this moment, the oldest first, as JSON Lines or CSV. The last line has their number and the last hash: " +
			"without it the export was cut off. The export is recorded before it begins. A token for some sites names one of them as site.",
		problems: map[api.Sort]string{api.NotFound: "This node keeps no such log."},
	}, func(ctx context.Context, in *exportInput) (*huma.StreamResponse, error) {
		write, err := log.Export(ctx, &in.AuditFilter, in.Log, in.Format)
		if err != nil {
			return nil, err
		}
		kind := "application/jsonl"
		if in.Format == "csv" {
			kind = "text/csv; charset=utf-8; header=present"
		}
		return &huma.StreamResponse{Body: func(out huma.Context) {
			out.SetHeader("Content-Type", kind)
			out.SetHeader("Content-Disposition", `attachment; filename="audit.`+in.Format+`"`)
			if write(out.BodyWriter()) != nil {
				panic(http.ErrAbortHandler) // so that the client does not take it for all
			}
		}}, nil
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/audit/{id}", id: "get-audit-record", tag: "audit", right: api.AuditRead, scoped: true,
		summary: "Show an audit record", description: "By the id of its event. Reading one record is not recorded.", problems: map[api.Sort]string{api.NotFound: "No such record is kept."},
	}, func(ctx context.Context, in *auditRecordInput) (*answer[api.AuditRecord], error) {
		return answerOf(log.Get(ctx, in.ID))
	})
}
