package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type deleteTokenInput struct {
	Name  string `path:"name" doc:"The token's name."`
	Force bool   `query:"force" doc:"Delete even the last one with the role admin that does not end."`
}

func tokens(b *builder) {
	tokens := admin.Tokens{Service: b.Service}
	unsupported := "This node keeps no tokens."
	handle(b, route{
		method: http.MethodGet, path: "/v1/tokens", id: "list-tokens", tag: "tokens", right: api.Admin,
		summary: "List tokens", description: "Without their secrets, which the node does not have.",
		problems: map[api.Sort]string{api.Unsupported: unsupported},
	}, func(ctx context.Context, _ *struct{}) (*answer[api.TokenList], error) {
		return answerOf(tokens.List(ctx))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/tokens/self", id: "get-caller", tag: "tokens", right: api.AnyToken, scoped: true,
		summary: "Who am I?", description: "The name and the rights of the token that the request brings. A request that needs none has every right.",
	}, func(ctx context.Context, _ *struct{}) (*answer[api.Caller], error) {
		return answerOf(tokens.Self(ctx), nil)
	})
	asked(b, route{
		method: http.MethodPost, path: "/v1/tokens", id: "create-token", tag: "tokens", right: api.Admin,
		summary: "Create a token", description: "With a role or with rights, which may be narrowed to sites, destinations and topics, and may end. The answer holds its secret. It is shown only once.",
		status: http.StatusCreated,
		problems: map[api.Sort]string{
			api.Conflict: "The name is taken.", api.Unsupported: unsupported, api.DiskFull: "The disk is full; no token was made.",
		},
		bodyRequired: true, requestSample: json.RawMessage(`{"name":"erp","role":"operate"}`),
	}, func(ctx context.Context, _ *WithBody, req *api.NewToken, wrong []api.Fault) (*answer[api.CreatedToken], error) {
		return answerOf(tokens.Create(ctx, req, wrong...))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/tokens/{name}", id: "delete-token", tag: "tokens", right: api.Admin,
		summary: "Delete a token", description: "Requests that use it are refused from now on. The last one with the role admin that does not end stays unless force is set.",
		problems: map[api.Sort]string{
			api.NotFound: "There is no such token.", api.Conflict: "It is the last token with the role admin that does not end.", api.Unsupported: unsupported, api.DiskFull: "The disk is full; nothing was changed.",
		},
	}, func(ctx context.Context, in *deleteTokenInput) (*struct{}, error) {
		return nil, tokens.Delete(ctx, in.Name, in.Force)
	})
}
