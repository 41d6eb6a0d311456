package admin

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-mq/holdfast"
)

// Health is how a node fares.
type Health struct {
	Status  string    `json:"status" enum:"ok,degraded,failing" doc:"degraded: it works, and something needs a look; failing: due messages make no progress, or nothing can be stored."`
	Node    string    `json:"node" doc:"The node's id."`
	Version string    `json:"version" doc:"Of the program."`
	Role    string    `json:"role,omitempty" doc:"site, central or standalone."`
	Started time.Time `json:"started,omitzero"`
	Pending int64     `json:"pending" doc:"Messages that wait to be sent: the depth of the outbox."`
	Parked  int64     `json:"parked" doc:"Messages that wait for a person."`
	Checks  []Check   `json:"checks,omitempty" nullable:"false"`
}

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name" example:"disk"`
	Status string `json:"status" enum:"ok,degraded,failing"`
	Detail string `json:"detail,omitempty" doc:"What was seen, and what to do."`
}

// The values of a status.
const (
	OK       = "ok"
	Degraded = "degraded"
	Failing  = "failing"
)

// OutboxStats are the numbers of the outbox (OI-17), kept in memory.
type OutboxStats struct {
	Pending int64 `json:"pending" doc:"Waiting to be sent."`
	Sending int64 `json:"sending" doc:"Being tried."`
	Failed  int64 `json:"failed" doc:"Parked: they wait for a person."`
	Expired int64 `json:"expired" doc:"Their TTL ended first."`
}

// InboxStats are the numbers of the inbox (OI-17), kept in memory.
type InboxStats struct {
	Size          int64   `json:"size" doc:"Ids remembered."`
	Kept          int64   `json:"kept" doc:"Messages that wait to be fetched."`
	Received      int64   `json:"received" doc:"Messages since the start, duplicates included."`
	Duplicates    int64   `json:"duplicates" doc:"Of them, repeats."`
	DuplicateRate float64 `json:"duplicateRate" minimum:"0" maximum:"1" doc:"Duplicates per message received; 0 before the first."`
}

type healthOutput struct {
	Status int
	Body   Health
}

type outboxStatsOutput struct{ Body OutboxStats }

type inboxStatsOutput struct{ Body InboxStats }

type failedInput struct {
	After string `query:"after" maxLength:"256" doc:"The next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

func (b *builder) diagnostics() {
	handle(b, route{
		method: http.MethodGet, path: "/_rf/health", id: "health", tag: "diagnostics", role: Read,
		summary: "Health of the node", description: "200 while it is ok or degraded, 503 with the same body when it is failing.",
	}, b.health)
	responses := b.operation(http.MethodGet, "/_rf/health").Responses
	failing := *responses["200"]
	failing.Description = "The node is failing (a health report), or the store is closed (a problem)."
	failing.Content = map[string]*huma.MediaType{
		"application/json": responses["200"].Content["application/json"], problemType: responses["503"].Content[problemType],
	}
	responses["503"] = &failing
	handle(b, route{
		method: http.MethodGet, path: "/_rf/outbox/stats", id: "outbox-stats", tag: "diagnostics", role: Read,
		summary: "Numbers of the outbox", description: "Kept in memory: asking costs nothing.",
	}, b.outboxStats)
	handle(b, route{
		method: http.MethodGet, path: "/_rf/outbox/failed", id: "outbox-failed", tag: "diagnostics", role: Read,
		summary: "List parked messages", description: "The same as GET /v1/messages?state=parked.",
	}, b.failed)
	retry := allDecided()[0]
	handle(b, route{
		method: http.MethodPost, path: "/_rf/outbox/{id}/retry", id: "outbox-retry", tag: "diagnostics", role: Operate,
		summary: "Retry a message", description: "The same as POST /v1/messages/{id}/retry.",
		problems: decisionProblems(retry.verb),
		request:  retry.request,
	}, func(ctx context.Context, in *decisionInput) (*messageOutput, error) {
		return b.decided(ctx, &retry, in)
	})
	handle(b, route{
		method: http.MethodGet, path: "/_rf/inbox/stats", id: "inbox-stats", tag: "diagnostics", role: Read,
		summary: "Numbers of the inbox", description: "Kept in memory: asking costs nothing.",
	}, b.inboxStats)
}

func (s *Server) health(context.Context, *struct{}) (*healthOutput, error) {
	h := Health{Status: OK}
	if s.Health != nil {
		h = s.Health()
	}
	counts := s.Outbox.Counts()
	h.Status, h.Node, h.Version = cmp.Or(h.Status, OK), s.Node, s.version()
	h.Pending, h.Parked = counts.Pending, counts.Parked
	out := &healthOutput{Status: http.StatusOK, Body: h}
	if h.Status == Failing {
		out.Status = http.StatusServiceUnavailable
	}
	return out, nil
}

func (s *Server) outboxStats(context.Context, *struct{}) (*outboxStatsOutput, error) {
	c := s.Outbox.Counts()
	return &outboxStatsOutput{OutboxStats{Pending: c.Pending, Sending: c.Claimed, Failed: c.Parked, Expired: c.Expired}}, nil
}

func (s *Server) failed(ctx context.Context, in *failedInput) (*pageOutput, error) {
	return s.page(ctx, holdfast.Query{States: []holdfast.State{holdfast.Parked}, Limit: in.Limit, After: in.After})
}

func (s *Server) inboxStats(context.Context, *struct{}) (*inboxStatsOutput, error) {
	c := s.Outbox.Counts()
	stats := InboxStats{Size: c.Inbox, Kept: c.Kept, Received: c.Received, Duplicates: c.Duplicates}
	if c.Received > 0 {
		stats.DuplicateRate = float64(c.Duplicates) / float64(c.Received)
	}
	return &inboxStatsOutput{stats}, nil
}
