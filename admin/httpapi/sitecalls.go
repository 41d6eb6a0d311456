package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type siteCallListInput struct {
	Site        string    `query:"site" doc:"Only this site."`
	Node        string    `query:"node" doc:"Only this node."`
	Status      []string  `query:"status,explode" doc:"Only these statuses: repeat the parameter, or separate by commas."`
	Destination string    `query:"destination" doc:"Only this destination."`
	Category    string    `query:"category" doc:"Only this category."`
	Error       string    `query:"error" maxLength:"200" doc:"Only calls whose last error has this text, in any case."`
	From        time.Time `query:"from" doc:"Only calls that were made then or later, by the clock of their site."`
	To          time.Time `query:"to" doc:"Only calls that were made before."`
	After       string    `query:"after" maxLength:"1024" doc:"The next of the page before."`
	Limit       int       `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

type siteCallInput struct {
	Site string `path:"site" doc:"The site's name."`
	ID   string `path:"id" doc:"The operation's id; a UUID in any form."`
}

func siteCalls(b *builder) {
	calls := admin.SiteCalls{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/v1/site-calls", id: "list-site-calls", tag: "sites", right: api.Read, scoped: true,
		summary: "List calls of sites", description: "What sites have said of their calls of foreign systems and writes into databases, the newest first. This node delivers none of them. A token for some sites or destinations names one of each.",
	}, func(ctx context.Context, in *siteCallListInput) (*answer[api.SiteCallPage], error) {
		return answerOf(calls.List(ctx, &admin.SiteCallQuery{
			Site: in.Site, Node: in.Node, States: in.Status, Destination: in.Destination, Category: in.Category, Error: in.Error, From: in.From, To: in.To, After: in.After, Limit: in.Limit,
		}))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/site-calls/kpis", id: "count-site-calls", tag: "sites", right: api.Read, scoped: true,
		summary: "Numbers of calls of sites", description: "Of those that have not ended, by site and node.",
	}, func(ctx context.Context, _ *struct{}) (*answer[api.SiteCallCounts], error) {
		return answerOf(calls.Counts(ctx))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/site-calls/{site}/{id}", id: "get-site-call", tag: "sites", right: api.Read, scoped: true,
		summary: "Show a call of a site", description: "As the site said last. To retry or discard it, decide about the message of the same id at the site.",
		problems: map[api.Sort]string{api.NotFound: "The site has told of no such call."},
	}, func(ctx context.Context, in *siteCallInput) (*answer[api.SiteCall], error) {
		return answerOf(calls.Get(ctx, in.Site, in.ID))
	})
}
