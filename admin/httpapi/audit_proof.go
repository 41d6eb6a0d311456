package httpapi

import (
	"context"
	"encoding/json"
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
	asked(b, route{
		method: http.MethodPost, path: "/v1/audit/rotate-key", id: "rotate-audit-key", tag: "audit", right: api.Admin, slow: true,
		summary: "Change the key that signs the audit log",
		description: "The new key is that of the file beside audit.key with .new at its end, or one that the node makes there. The log has a record of it, both keys sign what the log then has, and the new one takes the file of " +
			"the old one. Whoever believes the old key believes the new one by that checkpoint, which is the answer.",
		problems: map[api.Sort]string{
			api.WrongState: "The new key's file cannot be used, or the log is not the one that was signed before.", api.Unsupported: "The node has no key, or no audit log.",
			api.DiskFull: "The disk is full; nothing was changed.",
		},
		bodyRequired: true, requestSample: json.RawMessage(`{"reason":"yearly change"}`),
	}, func(ctx context.Context, _ *WithBody, req *api.AuditRotation, wrong []api.Fault) (*answer[api.AuditCheckpoint], error) {
		return answerOf(log.Rotate(ctx, req, wrong...))
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
