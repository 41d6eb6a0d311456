package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type siteInput struct {
	Site string `path:"site" doc:"The site's name."`
}

type siteRotateInput struct {
	Site string `path:"site" doc:"The site's name."`
	Now  bool   `query:"now" doc:"End its credentials at once, for example if one was stolen: the site is shut out until it enrolls again."`
}

type siteListInput struct {
	Site        string   `path:"site" doc:"The site's name."`
	State       []string `query:"state,explode" doc:"Only these states: repeat the parameter, or separate by commas. Absent: parked; with held, all."`
	Destination string   `query:"destination" doc:"Only this destination."`
	Held        bool     `query:"held" doc:"Only messages that are held, because their TTL is over by a clock that the site doubts: heldUntil. Pages are in no order of time."`
	After       string   `query:"after" maxLength:"512" doc:"The next of the page before."`
	Limit       int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

type siteMessageInput struct {
	Site string `path:"site" doc:"The site's name."`
	ID   string `path:"id" doc:"The message id; a UUID in any form."`
}

type siteDecisionInput struct {
	Site    string `path:"site" doc:"The site's name."`
	ID      string `path:"id" doc:"The message id; a UUID in any form."`
	Content body
}

// relayed adds to problems the refusals that a request to a site can meet.
func relayed(problems map[api.Sort]string) map[api.Sort]string {
	problems[api.SiteAway] = "The site does not poll this node; nothing was done. The problem says when it was last seen."
	problems[api.SiteSilent] = "The site took the request but did not answer in time: it may have done it."
	problems[api.SiteBusy] = "Too many commands wait for the site; nothing was done."
	problems[api.SiteUnavailable] = "The site's store cannot do it now."
	problems[api.SiteFailed] = "The site failed, or its answer is larger than the link carries."
	problems[api.Unsupported] = "The site's program is older and does not know the command."
	problems[api.DiskFull] = "The site's disk is full; nothing was done."
	if problems[api.NotFound] == "" {
		problems[api.NotFound] = "There is no such site."
	}
	return problems
}

func sites(b *builder) {
	sites := admin.Sites{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites", id: "list-sites", tag: "sites", right: api.Read, scoped: true,
		summary: "List sites", description: "By name, with the last report of each.",
	}, func(ctx context.Context, _ *struct{}) (*answer[api.SiteList], error) {
		return answerOf(sites.List(ctx))
	})
	asked(b, route{
		method: http.MethodPost, path: "/v1/sites", id: "add-site", tag: "sites", right: api.Admin, status: http.StatusCreated,
		summary: "Add a site", description: "The answer holds the token with which it enrolls. It is shown only once.",
		problems:     map[api.Sort]string{api.Conflict: "The name is taken.", api.DiskFull: "The disk is full; nothing was changed."},
		bodyRequired: true, requestSample: json.RawMessage(`{"name":"plant-7"}`),
	}, func(ctx context.Context, _ *WithBody, req *api.NewSite, wrong []api.Fault) (*answer[api.SiteToken], error) {
		return answerOf(sites.Add(ctx, req, wrong...))
	})
	changes := map[api.Sort]string{api.NotFound: "There is no such site, or it is revoked.", api.DiskFull: "The disk is full; nothing was changed."}
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites/{site}", id: "get-site", tag: "sites", right: api.Read, scoped: true,
		summary: "Show a site", description: "With its last report.",
		problems: map[api.Sort]string{api.NotFound: "There is no such site."},
	}, func(ctx context.Context, in *siteInput) (*answer[api.Site], error) {
		return answerOf(sites.Get(ctx, in.Site))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/sites/{site}", id: "revoke-site", tag: "sites", right: api.Admin,
		summary: "Revoke a site", description: "Its credential and its token end at once. Messages that wait there go on waiting. Its name is free again.",
		problems: changes,
	}, func(ctx context.Context, in *siteInput) (*struct{}, error) { return nil, sites.Revoke(ctx, in.Site) })
	handle(b, route{
		method: http.MethodPost, path: "/v1/sites/{site}/rotate", id: "rotate-site", tag: "sites", right: api.Admin,
		summary: "Rotate a site's credential", description: "The answer holds a token with which it enrolls again. It is shown only once. The old credential stays valid until then and for a day after, unless now is set.",
		problems: changes,
	}, func(ctx context.Context, in *siteRotateInput) (*answer[api.SiteToken], error) {
		return answerOf(sites.Rotate(ctx, in.Site, in.Now))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites/{site}/messages", id: "list-site-messages", tag: "sites", right: api.Read, scoped: true,
		summary: "List messages of a site", description: "The site is asked. Without a state they are the parked ones, or with held all that are held, of all destinations.",
		problems: relayed(map[api.Sort]string{}),
	}, func(ctx context.Context, in *siteListInput) (*answer[api.MessagePage], error) {
		there, err := sites.At(ctx, in.Site)
		if err != nil {
			return nil, err
		}
		return answerOf(there.List(ctx, &admin.MessageQuery{States: in.State, Destination: in.Destination, Held: in.Held, After: in.After, Limit: in.Limit}))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/sites/{site}/messages/{id}", id: "get-site-message", content: true, tag: "sites", right: api.Read, scoped: true,
		summary: "Show a message of a site", description: "With its payload and its history. The node asks the site. The id of an operation is the id of its call's message.",
		problems: relayed(map[api.Sort]string{api.NotFound: "There is no such site, or it keeps no such message."}),
	}, func(ctx context.Context, in *siteMessageInput) (*answer[api.MessageDetail], error) {
		there, err := sites.At(ctx, in.Site)
		if err != nil {
			return nil, err
		}
		return answerOf(there.Get(ctx, in.ID))
	})
	siteDecisions(b)
}
