package httpapi

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// proving adds the routes of what others verify.
func proving(b *builder) {
	log := admin.Audit{Service: b.Service}
	handle(b, route{
		method: http.MethodPost, path: "/v1/audit/checkpoint", id: "sign-audit", tag: "audit", right: api.AuditRead,
		summary: "Sign the audit log", description: "Signs what the node's own log has now. If nothing was added since the last checkpoint, the answer is that one.",
		problems: map[api.Sort]string{
			api.WrongState: "The log is empty, or is not the one that was signed before.", api.Unsupported: "The node has no key, or no audit log.",
			api.DiskFull: "The disk is full; nothing was signed.",
		},
	}, func(ctx context.Context, _ *struct{}) (*answer[api.AuditCheckpoint], error) {
		return answerOf(log.Checkpoint(ctx))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/audit/{id}/proof", id: "prove-audit-record", tag: "audit", right: api.AuditRead, scoped: true,
		summary: "Prove an audit record",
		description: "By the id of its event. The answer shows to whoever has the verifier key that the record is in the log, without the node; holdfast audit verify --proof reads it. " +
			"It has no personal values. Of a site's record at central it has the way to central's own log. If no checkpoint covers the record yet, one is signed.",
		problems: map[api.Sort]string{api.NotFound: "No such record is kept.", api.WrongState: "No checkpoint covers the record, or the way from a site's record is not here."},
	}, func(ctx context.Context, in *auditRecordInput) (*answer[api.AuditProof], error) {
		return answerOf(log.Prove(ctx, in.ID))
	})
}
