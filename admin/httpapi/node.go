package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// node adds the routes of the node itself.
func node(b *builder) {
	asked(b, route{
		method: http.MethodPost, path: "/v1/backups", id: "create-backup", tag: "backups", right: api.Admin,
		summary: "Make a backup",
		description: "Writes a copy of the database to a new file in the folder, while the node works on. The answer comes after the copy has been " +
			"checked and is on disk, which takes as long as the database is large; a request that ends earlier ends the copy.",
		status: http.StatusCreated, slow: true,
		problems: map[api.Sort]string{
			api.Unsupported: "This node cannot copy its database.", api.DiskFull: "The folder's disk has too little room; detail says how much is needed.",
		},
		bodyRequired: true, requestSample: json.RawMessage(`{"folder":"/mnt/backups"}`),
	}, func(ctx context.Context, _ *WithBody, req *api.NewBackup, wrong []api.Fault) (*answer[api.Backup], error) {
		return answerOf(admin.Node{Service: b.Service}.Backup(ctx, req, wrong...))
	})
	unsupported := "This node's store has no other histories."
	handle(b, route{
		method: http.MethodPost, path: "/v1/history/acknowledge", id: "acknowledge-history", tag: "diagnostics", right: api.Operate,
		summary: "Acknowledge the history of the database",
		description: "Says that people know about the database's other history, for example after a failover or a restore, and have handled what may be missing " +
			"in it. No node's health reports it any more.",
		problems: map[api.Sort]string{api.Unsupported: unsupported, api.DiskFull: "The disk is full; nothing was changed."},
	}, func(ctx context.Context, _ *struct{}) (*struct{}, error) {
		return nil, admin.Node{Service: b.Service}.AcknowledgeHistory(ctx)
	})
}

type healthOutput struct {
	Status int
	Body   api.Health
}

type failedInput struct {
	After string `query:"after" maxLength:"512" doc:"The value next of the previous page."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"The largest number of entries."`
}

type historyInput struct {
	Since time.Time `query:"since" doc:"Only minutes that began then or later."`
}

func diagnostics(b *builder) {
	health, messages := admin.Node{Service: b.Service}, admin.Messages{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/_rf/health", id: "health", tag: "diagnostics", right: api.Read,
		summary: "Health of the node", description: "200 while it is ok or degraded, 503 with the same body when it is failing.",
	}, func(context.Context, *struct{}) (*healthOutput, error) {
		out := &healthOutput{Status: http.StatusOK, Body: health.Health()}
		if out.Body.Status == api.Failing {
			out.Status = http.StatusServiceUnavailable
		}
		return out, nil
	})
	responses := b.operation(http.MethodGet, "/_rf/health").Responses
	failing := *responses["200"]
	failing.Description = "The node is failing (a health report), or the store is closed (a problem)."
	failing.Content = map[string]*huma.MediaType{
		"application/json": responses["200"].Content["application/json"], api.ProblemType: responses["503"].Content[api.ProblemType],
	}
	responses["503"] = &failing
	handle(b, route{
		method: http.MethodGet, path: "/v1/health", id: "overview", tag: "diagnostics", right: api.Read,
		summary:     "Overview of the node",
		description: "Its health, its lanes in short, and the numbers of its parts, with those of its sites if it is a central. The status is 200, also while the node is failing.",
	}, func(ctx context.Context, _ *struct{}) (*answer[api.Overview], error) {
		return answerOf(health.Overview(ctx), nil)
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/history", id: "history", tag: "diagnostics", right: api.Read,
		summary:     "Counts of each minute",
		description: "What each node of the store did in each minute, for charts: of the last day, and one hour more. What happens in the minute in which a node stops is not counted.",
		problems:    map[api.Sort]string{api.Unsupported: "This node does not keep them."},
	}, func(ctx context.Context, in *historyInput) (*answer[api.History], error) {
		return answerOf(health.History(ctx, in.Since))
	})
	handle(b, route{
		method: http.MethodGet, path: "/_rf/outbox/stats", id: "outbox-stats", tag: "diagnostics", right: api.Read,
		summary: "Numbers of the outbox", description: "Kept in memory: asking costs nothing.",
	}, func(context.Context, *struct{}) (*answer[api.OutboxStats], error) {
		return answerOf(health.OutboxStats(), nil)
	})
	handle(b, route{
		method: http.MethodGet, path: "/_rf/outbox/failed", id: "outbox-failed", tag: "diagnostics", right: api.Read, scoped: true,
		summary: "List parked messages", description: "The same as GET /v1/messages?state=parked.",
	}, func(ctx context.Context, in *failedInput) (*answer[api.MessagePage], error) {
		return answerOf(messages.List(ctx, &admin.MessageQuery{States: []string{"parked"}, Limit: in.Limit, After: in.After}))
	})
	retry := allDecided()[0]
	handle(b, route{
		method: http.MethodPost, path: "/_rf/outbox/{id}/retry", id: "outbox-retry", tag: "diagnostics", right: api.Operate, scoped: true,
		summary: "Retry a message", description: "The same as POST /v1/messages/{id}/retry.",
		problems: decisionProblems(retry.verb),
		request:  retry.request,
	}, func(ctx context.Context, in *decisionInput) (*answer[api.Message], error) {
		return answerOf(retry.do(ctx, messages, in.ID, &in.Content))
	})
	handle(b, route{
		method: http.MethodGet, path: "/_rf/inbox/stats", id: "inbox-stats", tag: "diagnostics", right: api.Read,
		summary: "Numbers of the inbox", description: "Kept in memory: asking costs nothing.",
	}, func(context.Context, *struct{}) (*answer[api.InboxStats], error) {
		return answerOf(health.InboxStats(), nil)
	})
}
