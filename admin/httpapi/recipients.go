package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type putRecipientInput struct {
	WithBody
	Name string `path:"name" doc:"The list's name."`
}

type deleteRecipientInput struct {
	Name    string `path:"name" doc:"The list's name."`
	Channel string `query:"channel" doc:"The recipient's channel."`
	Address string `query:"address" doc:"Its address. Absent: the one target that the channel has."`
}

type listChangeOutput struct {
	ETag string `header:"ETag" doc:"The version of the list, for If-Match."`
	Body api.ListChange
}

func changeAnswer(c api.ListChange, err error) (*listChangeOutput, error) {
	if err != nil {
		return nil, err
	}
	return &listChangeOutput{ETag: etag(c.Version), Body: c}, nil
}

func recipients(b *builder) {
	all := admin.Lists{Service: b.Service}
	none, full := "There is no such list.", "The disk is full; nothing was changed."
	problems := map[api.Sort]string{api.NotFound: none, api.Changed: "Other requests keep changing the list.", api.DiskFull: full, api.Unsupported: unsupportedNotify}
	asked(b, route{
		method: http.MethodPut, path: "/v1/lists/{name}/recipients", id: "put-recipient", tag: "lists", right: api.Admin,
		summary: "Add or change a recipient", description: "The recipient with this channel and address. A repeat changes nothing.",
		problems: problems, bodyRequired: true,
		requestSample: json.RawMessage(`{"channel":"mail","address":"jane@example.com","name":"Doe, Jane"}`),
	}, func(ctx context.Context, in *putRecipientInput, req *api.RecipientSpec, wrong []api.Fault) (*listChangeOutput, error) {
		return changeAnswer(all.PutRecipient(ctx, in.Name, req, wrong...))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/lists/{name}/recipients", id: "delete-recipient", tag: "lists", right: api.Admin,
		summary: "Remove a recipient", description: "The recipient with this channel and address.",
		problems: map[api.Sort]string{
			api.NotFound: "There is no such list, or it has no recipient with this channel and address.", api.Changed: problems[api.Changed], api.DiskFull: full, api.Unsupported: unsupportedNotify,
		},
	}, func(ctx context.Context, in *deleteRecipientInput) (*listChangeOutput, error) {
		return changeAnswer(all.DeleteRecipient(ctx, in.Name, in.Channel, in.Address))
	})
	asked(b, route{
		method: http.MethodPost, path: "/v1/lists/{name}/recipients/import", id: "import-recipients", tag: "lists", right: api.Admin,
		summary: "Import recipients", description: "Adds recipients that are not on the list yet, and changes those that are. If a line is wrong, the problem names it and nothing is changed.",
		problems: problems, bodyRequired: true, bodyLimit: bookBody,
		requestSample: json.RawMessage(`{"channel":"mail","text":"john@example.com\n\"Doe, Jane\" <jane@example.com>"}`),
	}, func(ctx context.Context, in *putRecipientInput, req *api.ImportRequest, wrong []api.Fault) (*listChangeOutput, error) {
		return changeAnswer(all.Import(ctx, in.Name, req, wrong...))
	})
}
