package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Holds lists what keeps records from being purged.
func (a Audit) Holds(ctx context.Context) (api.AuditHolds, error) {
	return get[api.AuditHolds](ctx, a.c, "/v1/audit/holds", nil)
}

// Hold keeps records from being purged. The same hold made again is the same hold.
func (a Audit) Hold(ctx context.Context, h *api.NewAuditHold) (api.AuditHold, error) {
	return send[api.AuditHold](ctx, a.c, http.MethodPost, "/v1/audit/holds", nil, h)
}

// Erase deletes personal values that stand beside records. Asked again, it goes on where it was cut off.
func (a Audit) Erase(ctx context.Context, e *api.AuditErasure) (api.AuditErased, error) {
	return send[api.AuditErased](ctx, a.c, http.MethodPost, "/v1/audit/erasures", nil, e)
}

// Release ends a hold.
func (a Audit) Release(ctx context.Context, name, reason string) error {
	body, err := json.Marshal(api.AuditRelease{Reason: reason})
	if err != nil {
		return fmt.Errorf("encode the reason: %w", err)
	}
	return a.c.do(ctx, http.MethodPost, "/v1/audit/holds/"+api.Segment(name)+"/release", nil, body, nil)
}
