package client

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Checkpoint signs what the node's own log has now.
func (a Audit) Checkpoint(ctx context.Context) (api.AuditCheckpoint, error) {
	return send[api.AuditCheckpoint](ctx, a.c, http.MethodPost, "/v1/audit/checkpoint", nil, nil)
}

// Rotate hands over to another signing key, and returns the checkpoint that both have signed. With From it can be asked
// again after an answer was lost.
func (a Audit) Rotate(ctx context.Context, r api.AuditRotation) (api.AuditCheckpoint, error) {
	return send[api.AuditCheckpoint](ctx, a.c, http.MethodPost, "/v1/audit/rotate-key", nil, r)
}

// Prove returns the proof that the record of an event is in the log.
func (a Audit) Prove(ctx context.Context, id string) (api.AuditProof, error) {
	return get[api.AuditProof](ctx, a.c, "/v1/audit/"+api.Segment(id)+"/proof", nil)
}
