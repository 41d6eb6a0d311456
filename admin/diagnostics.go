package admin

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type healthOutput struct {
	Status int
	Body   api.Health
}

type outboxStatsOutput struct{ Body api.OutboxStats }

type inboxStatsOutput struct{ Body api.InboxStats }

type failedInput struct {
	After string `query:"after" maxLength:"256" doc:"The next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

func (b *builder) diagnostics() {
	handle(b, route{
		method: http.MethodGet, path: "/_rf/health", id: "health", tag: "diagnostics", role: api.Read,
		summary: "Health of the node", description: "200 while it is ok or degraded, 503 with the same body when it is failing.",
	}, b.health)
	responses := b.operation(http.MethodGet, "/_rf/health").Responses
	failing := *responses["200"]
	failing.Description = "The node is failing (a health report), or the store is closed (a problem)."
	failing.Content = map[string]*huma.MediaType{
		"application/json": responses["200"].Content["application/json"], api.ProblemType: responses["503"].Content[api.ProblemType],
	}
	responses["503"] = &failing
	handle(b, route{
		method: http.MethodGet, path: "/_rf/outbox/stats", id: "outbox-stats", tag: "diagnostics", role: api.Read,
		summary: "Numbers of the outbox", description: "Kept in memory: asking costs nothing.",
	}, b.outboxStats)
	handle(b, route{
		method: http.MethodGet, path: "/_rf/outbox/failed", id: "outbox-failed", tag: "diagnostics", role: api.Read,
		summary: "List parked messages", description: "The same as GET /v1/messages?state=parked.",
	}, b.failed)
	retry := allDecided()[0]
	handle(b, route{
		method: http.MethodPost, path: "/_rf/outbox/{id}/retry", id: "outbox-retry", tag: "diagnostics", role: api.Operate,
		summary: "Retry a message", description: "The same as POST /v1/messages/{id}/retry.",
		problems: decisionProblems(retry.verb),
		request:  retry.request,
	}, func(ctx context.Context, in *decisionInput) (*messageOutput, error) {
		return b.decided(ctx, &retry, in)
	})
	handle(b, route{
		method: http.MethodGet, path: "/_rf/inbox/stats", id: "inbox-stats", tag: "diagnostics", role: api.Read,
		summary: "Numbers of the inbox", description: "Kept in memory: asking costs nothing.",
	}, b.inboxStats)
}

func (s *Server) health(context.Context, *struct{}) (*healthOutput, error) {
	h := api.Health{Status: api.OK}
	if s.Health != nil {
		h = s.Health()
	}
	counts := s.Outbox.Counts()
	h.Status, h.Node, h.Version = cmp.Or(h.Status, api.OK), s.Node, s.version()
	h.Pending, h.Parked = counts.Pending, counts.Parked
	out := &healthOutput{Status: http.StatusOK, Body: h}
	if h.Status == api.Failing {
		out.Status = http.StatusServiceUnavailable
	}
	return out, nil
}

func (s *Server) outboxStats(context.Context, *struct{}) (*outboxStatsOutput, error) {
	c := s.Outbox.Counts()
	return &outboxStatsOutput{api.OutboxStats{Pending: c.Pending, Sending: c.Claimed, Failed: c.Parked, Expired: c.Expired}}, nil
}

func (s *Server) failed(ctx context.Context, in *failedInput) (*pageOutput, error) {
	return s.page(ctx, holdfast.Query{States: []holdfast.State{holdfast.Parked}, Limit: in.Limit, After: in.After})
}

func (s *Server) inboxStats(context.Context, *struct{}) (*inboxStatsOutput, error) {
	c := s.Outbox.Counts()
	stats := api.InboxStats{Size: c.Inbox, Kept: c.Kept, Received: c.Received, Duplicates: c.Duplicates}
	if c.Received > 0 {
		stats.DuplicateRate = float64(c.Duplicates) / float64(c.Received)
	}
	return &inboxStatsOutput{stats}, nil
}
