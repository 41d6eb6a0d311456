package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/activity"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// Activity offers what happened to the node's messages.
type Activity struct{ *Service }

// ActivityQuery narrows the log. Zero fields do not narrow.
type ActivityQuery struct {
	Kind, Destination, Message, Actor string
	Since, Until                      time.Time
}

// query reads a query, and narrows it to the caller's scope.
func (a Activity) query(ctx context.Context, q *ActivityQuery) (out activity.Query, err error) {
	if a.Service.Activity == nil {
		return out, noActivity()
	}
	among, p := a.among(ctx, q.Destination)
	if p != nil {
		return out, p
	}
	var faults []api.Fault
	out = activity.Query{Among: among, Destination: q.Destination, Actor: q.Actor, Since: q.Since, Until: q.Until}
	if q.Kind != "" {
		names := activity.Kinds()
		if at := slices.Index(names, q.Kind); at > 0 {
			out.Kind = activity.Kind(at)
		} else {
			faults = append(faults, api.Fault{Field: "kind", Value: api.Clip(q.Kind), Problem: "must be one of " + strings.Join(names[1:], ", ")})
		}
	}
	if q.Message != "" {
		id, p := parseID(q.Message)
		if p != nil {
			faults = append(faults, api.Fault{Field: "message", Value: api.Clip(q.Message), Problem: "is not the id of a message"})
		}
		out.Message = id
	}
	if len(faults) > 0 {
		return out, api.Faulty(faults...)
	}
	return out, nil
}

// List returns one page, newest first. after is ActivityPage.Next of the page before; zero: the newest.
func (a Activity) List(ctx context.Context, q *ActivityQuery, after int64, limit int) (out api.ActivityPage, err error) {
	query, err := a.query(ctx, q)
	if err != nil {
		return out, err
	}
	page, err := activity.List(ctx, a.Service.Activity, query, after, limit)
	if err != nil {
		return out, a.refuse(ctx, "list the activities", err)
	}
	out = api.ActivityPage{Activities: activitiesOf(page.Acts), Next: page.Next}
	if err := a.trace(ctx, out.Activities); err != nil {
		return out, a.refuse(ctx, "look the messages up", err)
	}
	return out, nil
}

func noActivity() *api.Problem {
	return api.Unsupported.Problem("this node keeps no activity log")
}

// Follow calls send with activities as they happen, until ctx ends, send fails, or the node stops. after is
// ActivityNews.Last of the last event; negative: from now on.
func (a Activity) Follow(ctx context.Context, q *ActivityQuery, after int64) (follow func(ctx context.Context, send func(n api.ActivityNews) error) error, err error) {
	query, err := a.query(ctx, q)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, send func(n api.ActivityNews) error) error {
		reader := activity.Reader{Query: query, After: after, Stop: a.Stopping}
		return reader.Follow(ctx, a.Service.Activity, func(n activity.News) error {
			return send(api.ActivityNews{Activities: activitiesOf(n.Acts), Last: n.Last, Missed: n.Missed})
		})
	}, nil
}

func activitiesOf(acts []activity.Act) []api.Activity {
	list := make([]api.Activity, len(acts))
	for i := range acts {
		a := &acts[i]
		list[i] = api.Activity{
			Seq: a.Seq, At: a.At, Kind: a.Kind.String(), Message: string(a.Message), Destination: a.Destination, Attempt: a.Attempt, Cycle: a.Cycle,
			Actor: a.Actor, Reason: string(a.Reason), Code: a.Code, Error: a.Error,
		}
	}
	return list
}

// traceParent is the header of a message with the sender's trace context.
const traceParent = "traceparent"

// trace adds what the messages say of their senders, as long as they are kept.
func (a Activity) trace(ctx context.Context, list []api.Activity) error {
	known := map[string]map[string]string{}
	for i := range list {
		one := &list[i]
		headers, ok := known[one.Message]
		if !ok {
			r, err := a.Outbox.Get(ctx, holdfast.ID(one.Message))
			if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
				return err
			}
			headers = r.Message.Headers
			known[one.Message] = headers
		}
		one.Provenance, one.TraceParent = provenanceOf(headers), headers[traceParent]
	}
	return nil
}
