package httpapi

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type destinationInput struct {
	Name string `path:"name" doc:"The destination's name."`
}

func destinations(b *builder) {
	all := admin.Destinations{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/v1/destinations", id: "list-destinations", tag: "destinations", right: api.Read, scoped: true,
		summary: "List destinations", description: "What waits for each, and how its lane fares. The numbers are kept in memory: asking costs nothing.",
	}, func(ctx context.Context, _ *struct{}) (*answer[api.DestinationList], error) {
		return answerOf(all.List(ctx), nil)
	})
	none := "There is no such destination, and no message for it."
	handle(b, route{
		method: http.MethodGet, path: "/v1/destinations/{name}", id: "get-destination", tag: "destinations", right: api.Read, scoped: true,
		summary: "Show a destination", description: "What waits for it, how its lane fares, and who paused or resumed it last.", problems: map[api.Sort]string{api.NotFound: none},
	}, func(ctx context.Context, in *destinationInput) (*answer[api.DestinationStatus], error) {
		return answerOf(all.Get(ctx, in.Name))
	})
	handle(b, route{
		method: http.MethodPost, path: "/v1/destinations/{name}/pause", id: "pause-destination", tag: "destinations", right: api.Operate, scoped: true,
		summary: "Pause a destination",
		description: "No node of the store begins anything more there, also after restarts, until somebody resumes it. Attempts under way end; " +
			"messages wait uncharged, and their TTL runs on. Other nodes see it within seconds. A paused one stays as it is.",
		problems: map[api.Sort]string{api.NotFound: none},
	}, func(ctx context.Context, in *destinationInput) (*answer[api.DestinationStatus], error) {
		return answerOf(all.Pause(ctx, in.Name))
	})
	handle(b, route{
		method: http.MethodPost, path: "/v1/destinations/{name}/resume", id: "resume-destination", tag: "destinations", right: api.Operate, scoped: true,
		summary: "Resume a destination", description: "Ends a pause. A destination that is held or down is tried at once.",
		problems: map[api.Sort]string{api.NotFound: none},
	}, func(ctx context.Context, in *destinationInput) (*answer[api.DestinationStatus], error) {
		return answerOf(all.Resume(ctx, in.Name))
	})
}
