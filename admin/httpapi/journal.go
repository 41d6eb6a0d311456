package httpapi

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type forgetInput struct {
	Name  string `path:"name" doc:"The follower's name."`
	Force bool   `query:"force" doc:"Forget even one that runs in this process: it ends."`
}

func journal(b *builder) {
	journal := admin.Journal{Service: b.Service}
	unsupported := "This node keeps no journal."
	handle(b, route{
		method: http.MethodGet, path: "/v1/journal/followers", id: "list-followers", tag: "journal", right: api.Admin,
		summary: "List the followers of the journal", description: "The journal is kept until each of them has read it.",
		problems: map[api.Sort]string{api.Unsupported: unsupported},
	}, func(ctx context.Context, _ *struct{}) (*answer[api.FollowerList], error) {
		return answerOf(journal.Followers(ctx))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/journal/followers/{name}", id: "forget-follower", tag: "journal", right: api.Admin,
		summary:     "Forget a follower of the journal",
		description: "The journal is no longer kept for it, and what it has not read is lost to it. If it comes back, it begins anew.",
		problems: map[api.Sort]string{
			api.NotFound: "No follower has this name.", api.Conflict: "It runs in this process, and force is not set.", api.Unsupported: unsupported,
		},
	}, func(ctx context.Context, in *forgetInput) (*struct{}, error) {
		return nil, journal.Forget(ctx, in.Name, in.Force)
	})
}
