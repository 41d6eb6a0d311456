package httpapi

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type rotateKeysInput struct {
	After string `query:"after" maxLength:"1024" doc:"The next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"200" doc:"How many rows about."`
}

func keys(b *builder) {
	keys := admin.Keys{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/v1/keys", id: "list-keys", tag: "keys", right: api.Read, slow: true,
		summary: "List keys", description: "The keys that secrets in the database are sealed with. Each secret is opened, and none is shown.",
	}, func(ctx context.Context, _ *struct{}) (*answer[api.KeyList], error) {
		return answerOf(keys.List(ctx))
	})
	handle(b, route{
		method: http.MethodPost, path: "/v1/keys/rotate", id: "rotate-keys", tag: "keys", right: api.Admin,
		summary: "Seal secrets with the newest key", description: "One page of them. Repeat it with the next of the answer until there is none. It may begin anew at any time: what has the newest key is left alone.",
		problems: map[api.Sort]string{api.WrongState: "The node has no key.", api.DiskFull: "The disk is full; nothing was changed."},
	}, func(ctx context.Context, in *rotateKeysInput) (*answer[api.KeyRotation], error) {
		return answerOf(keys.Rotate(ctx, in.After, in.Limit))
	})
}
