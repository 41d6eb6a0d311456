package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type channelInput struct {
	Name string `path:"name" doc:"The channel's name."`
}

type putChannelInput struct {
	admin.Conditions
	WithBody
	Name string `path:"name" doc:"The channel's name."`
}

type deleteChannelInput struct {
	admin.Conditions
	Name  string `path:"name" doc:"The channel's name."`
	Force bool   `query:"force" doc:"Delete it even if lists use it or notifications wait for it. Those wait until a channel of this name exists again."`
}

type channelOutput struct {
	ETag string `header:"ETag" doc:"The version, for If-Match."`
	Body api.Channel
}

type testChannelInput struct {
	WithBody
	Name string `path:"name" doc:"The channel's name."`
}

func channelAnswer(c api.Channel, err error) (*channelOutput, error) {
	if err != nil {
		return nil, err
	}
	return &channelOutput{ETag: etag(c.Version), Body: c}, nil
}

func channels(b *builder) {
	all := admin.Channels{Service: b.Service}
	none := "There is no such channel."
	handle(b, route{
		method: http.MethodGet, path: "/v1/channels", id: "list-channels", tag: "channels", right: api.Read,
		summary: "List channels", description: "With how each fares on this node.",
		problems: map[api.Sort]string{api.Unsupported: unsupportedNotify},
	}, func(ctx context.Context, _ *struct{}) (*answer[api.ChannelList], error) {
		return answerOf(all.List(ctx))
	})
	handle(b, route{
		method: http.MethodGet, path: "/v1/channels/{name}", id: "get-channel", tag: "channels", right: api.Read,
		summary: "Show a channel", description: "Its settings, and how it fares on this node.",
		problems: map[api.Sort]string{api.NotFound: none, api.Unsupported: unsupportedNotify},
	}, func(ctx context.Context, in *channelInput) (*channelOutput, error) {
		return channelAnswer(all.Get(ctx, in.Name))
	})
	asked(b, route{
		method: http.MethodPut, path: "/v1/channels/{name}", id: "put-channel", tag: "channels", right: api.Admin,
		summary:     "Make or replace a channel",
		description: "It is used within about a second, on all nodes, without a restart. You can change the answer of GET and send it back; its version keeps two people from overwriting each other.",
		problems: map[api.Sort]string{
			api.Changed: "It is not the version that the condition or the body names.", api.Unsupported: unsupportedNotify,
			api.DiskFull: "The disk is full; nothing was changed.",
		},
		bodyRequired: true, bodyLimit: 2 * admin.MostSettings,
		requestSample: json.RawMessage(`{"kind":"ntfy","settings":{"url":"https://ntfy.example"},"retry":{"attempts":10,"interval":"1m"}}`),
	}, func(ctx context.Context, in *putChannelInput, req *api.ChannelSpec, wrong []api.Fault) (*channelOutput, error) {
		return channelAnswer(all.Put(ctx, in.Name, req, in.Conditions, wrong...))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/channels/{name}", id: "delete-channel", tag: "channels", right: api.Admin,
		summary: "Delete a channel", description: "Refused while lists use it or notifications wait for it, unless force says otherwise.",
		problems: map[api.Sort]string{
			api.NotFound: none, api.WrongState: "Lists use it, or notifications wait for it.", api.Changed: "It is not the version that the condition names.",
			api.DiskFull: "The disk is full; nothing was changed.", api.Unsupported: unsupportedNotify,
		},
	}, func(ctx context.Context, in *deleteChannelInput) (*struct{}, error) {
		return nil, all.Delete(ctx, in.Name, in.Force, in.Conditions)
	})
	handle(b, route{
		method: http.MethodPost, path: "/v1/channels/{name}/resume", id: "resume-channel", tag: "channels", right: api.Operate,
		summary:     "Resume a held channel",
		description: "It is tried at once, instead of at its next probe. If several nodes share the store, the others try it at their next probes.",
		problems: map[api.Sort]string{
			api.NotFound: none, api.WrongState: "It is disabled.", api.DiskFull: "The disk is full; nothing was changed.", api.Unsupported: unsupportedNotify,
		},
	}, func(ctx context.Context, in *channelInput) (*channelOutput, error) {
		return channelAnswer(all.Resume(ctx, in.Name))
	})
	asked(b, route{
		method: http.MethodPost, path: "/v1/channels/{name}/test", id: "test-channel", tag: "channels", right: api.Operate,
		summary:       "Test a channel",
		description:   "Sends a test notification to one address, once, even over a channel that is held or disabled. The answer holds what the other side said; nothing is kept.",
		problems:      map[api.Sort]string{api.NotFound: none, api.Unsupported: unsupportedNotify},
		requestSample: json.RawMessage(`{"address":"jane@example.com"}`), slow: true,
	}, func(ctx context.Context, in *testChannelInput, req *api.TestRequest, wrong []api.Fault) (*answer[api.TestResult], error) {
		return answerOf(all.Test(ctx, in.Name, req, wrong...))
	})
}

// etag returns the entity tag of a version; empty: there is none, and no tag.
func etag(version string) string {
	if version == "" {
		return ""
	}
	return `"` + version + `"`
}
