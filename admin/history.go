package admin

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin/api"
)

func (b *builder) history() {
	unsupported := "This node's store has no other histories."
	handle(b, route{
		method: http.MethodPost, path: "/v1/history/acknowledge", id: "acknowledge-history", tag: "diagnostics", role: api.Operate,
		summary: "Acknowledge the history of the database",
		description: "Says that people know that the database has another history, as after a failover or a restore, and have seen to what may be missing " +
			"in it. No node's health tells of it any more.",
		problems: map[api.Sort]string{api.Unsupported: unsupported, api.DiskFull: "The disk is full; nothing was changed."},
	}, b.acknowledgeHistory)
}

func (s *Server) acknowledgeHistory(ctx context.Context, _ *struct{}) (*struct{}, error) {
	if s.Acknowledge == nil {
		return nil, api.Unsupported.Problem("this node keeps everything in a file of its own, which has one history")
	}
	if err := s.Acknowledge(ctx); err != nil {
		return nil, s.refuse(ctx, "acknowledge the history", err)
	}
	s.noted(ctx, "history of the database acknowledged by a person")
	return nil, nil //nolint:nilnil // huma's way to answer 204
}
