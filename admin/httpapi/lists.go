package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type listNameInput struct {
	Name string `path:"name" doc:"The list's name."`
}

type putListInput struct {
	admin.Conditions
	WithBody
	Name string `path:"name" doc:"The list's name."`
}

type deleteListInput struct {
	admin.Conditions
	Name string `path:"name" doc:"The list's name."`
}

type listOutput struct {
	ETag string `header:"ETag" doc:"The version, for If-Match."`
	Body api.List
}

// bookBody is the most bytes of a list, or of a text with recipients.
const bookBody = 8 << 20

func listAnswer(l api.List, err error) (*listOutput, error) {
	if err != nil {
		return nil, err
	}
	return &listOutput{ETag: etag(l.Version), Body: l}, nil
}

func lists(b *builder) {
	all := admin.Lists{Service: b.Service}
	none, full := "There is no such list.", "The disk is full; nothing was changed."
	changed := "It is not the version that the condition or the body names."
	handle(b, route{
		method: http.MethodGet, path: "/v1/lists", id: "list-lists", tag: "lists", right: api.Read,
		summary: "List lists", description: "Without their recipients, by name.",
		problems: map[api.Sort]string{api.Unsupported: unsupportedNotify},
	}, func(ctx context.Context, _ *struct{}) (*answer[api.Lists], error) { return answerOf(all.List(ctx)) })
	handle(b, route{
		method: http.MethodGet, path: "/v1/lists/{name}", id: "get-list", tag: "lists", right: api.Read,
		summary: "Show a list", description: "With its recipients, and why somebody is not reached.",
		problems: map[api.Sort]string{api.NotFound: none, api.Unsupported: unsupportedNotify},
	}, func(ctx context.Context, in *listNameInput) (*listOutput, error) {
		return listAnswer(all.Get(ctx, in.Name))
	})
	asked(b, route{
		method: http.MethodPut, path: "/v1/lists/{name}", id: "put-list", tag: "lists", right: api.Admin,
		summary:      "Make or replace a list",
		description:  "It applies to all notifications that are delivered from now on. You can change the answer of GET and send it back; its version keeps two people from overwriting each other.",
		problems:     map[api.Sort]string{api.Changed: changed, api.DiskFull: full, api.Unsupported: unsupportedNotify},
		bodyRequired: true, bodyLimit: bookBody,
		requestSample: json.RawMessage(`{"description":"Who is on call","recipients":[{"channel":"mail","address":"jane@example.com","name":"Doe, Jane"}]}`),
	}, func(ctx context.Context, in *putListInput, req *api.ListSpec, wrong []api.Fault) (*listOutput, error) {
		return listAnswer(all.Put(ctx, in.Name, req, in.Conditions, wrong...))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/lists/{name}", id: "delete-list", tag: "lists", right: api.Admin,
		summary: "Delete a list", description: "Notifications for it park; their reason says so.",
		problems: map[api.Sort]string{api.NotFound: none, api.Changed: changed, api.DiskFull: full, api.Unsupported: unsupportedNotify},
	}, func(ctx context.Context, in *deleteListInput) (*struct{}, error) {
		return nil, all.Delete(ctx, in.Name, in.Conditions)
	})
}
