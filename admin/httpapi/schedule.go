package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type putScheduleInput struct {
	admin.Conditions
	WithBody
}

type resetScheduleInput struct {
	admin.Conditions
	Apply string `query:"apply" enum:"next,waiting" doc:"For what it counts. next: what fails from now on; waiting: planned retries move, too. Absent: next."`
}

type scheduleOutput struct {
	ETag string `header:"ETag" doc:"The version, for If-Match."`
	Body api.UsualSchedule
}

func scheduleAnswer(s api.UsualSchedule, err error) (*scheduleOutput, error) {
	if err != nil {
		return nil, err
	}
	return &scheduleOutput{ETag: etag(s.Version), Body: s}, nil
}

func schedule(b *builder) {
	usual := admin.UsualSchedule{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/v1/schedule", id: "get-schedule", tag: "events", right: api.Read,
		summary: "Show the usual schedule", description: "When messages to subscriptions without a schedule of their own are tried again, as a timetable, too.",
		problems: map[api.Sort]string{api.Unsupported: noFanout},
	}, func(ctx context.Context, _ *struct{}) (*scheduleOutput, error) { return scheduleAnswer(usual.Get(ctx)) })
	asked(b, route{
		method: http.MethodPut, path: "/v1/schedule", id: "put-schedule", tag: "events", right: api.Admin,
		summary: "Set the usual schedule",
		description: "For all nodes of the store, within a second. It stands instead of what their configurations say; a schedule of a subscription stands instead of it. " +
			"Values that are absent are those of the configuration.",
		problems:     map[api.Sort]string{api.Changed: changedVersion, api.DiskFull: fullUnchanged, api.Unsupported: noFanout},
		bodyRequired: true, requestSample: json.RawMessage(`{"factor":"10s","base":3,"cap":"1h","retries":10,"apply":"waiting"}`),
	}, func(ctx context.Context, in *putScheduleInput, req *api.UsualScheduleSpec, wrong []api.Fault) (*scheduleOutput, error) {
		return scheduleAnswer(usual.Put(ctx, req, in.Conditions, wrong...))
	})
	handle(b, route{
		method: http.MethodDelete, path: "/v1/schedule", id: "reset-schedule", tag: "events", right: api.Admin,
		summary: "Give up the usual schedule", description: "What an operator has set is given up: the schedule of each node's configuration holds again, within a second. The answer is the one of the node that was asked.",
		problems: map[api.Sort]string{api.Changed: changedVersion, api.DiskFull: fullUnchanged, api.Unsupported: noFanout},
	}, func(ctx context.Context, in *resetScheduleInput) (*scheduleOutput, error) {
		return scheduleAnswer(usual.Reset(ctx, in.Apply, in.Conditions))
	})
}
