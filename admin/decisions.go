package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// decisionInput is a decision about a message, with what the request says of it.
type decisionInput struct {
	ID      string `path:"id" doc:"The message id; a UUID in any form."`
	Content body
}

// decisionProblems are what a person's decision about a message can meet.
func decisionProblems(verb holdfast.Verb) map[api.Sort]string {
	return map[api.Sort]string{
		api.NotFound:   "No such message is kept.",
		api.WrongState: "It is not " + anyOf(verb.States()) + "; the problem names its state.",
		api.DiskFull:   "The disk is full; nothing was changed.",
	}
}

// What the routes of decisions say, here and at a site.
const (
	retryText   = "Starts a new cycle of a parked, expired or discarded message: failures count from zero, it is due at once, and its TTL begins anew."
	discardText = "Gives up a message that is not delivered. One that is being tried ends with that attempt, unless the attempt delivers it: discarding, until then. Its row is kept for its retention."
	runText     = "Makes a pending message due at once, whatever it waits for but its destination and its ordering key. Of one that is being tried it holds for the retry."
	laterText   = "Says when a pending message is tried next. Of one that is being tried it holds for the retry, whatever that attempt comes to."
)

// decided is one thing that a person may do about a message, of this node's
// outbox or of a site's.
type decided struct {
	name, summary, text string
	verb                holdfast.Verb
	request             reflect.Type // nil: it has no body
	sample              string
	do                  func(s *Server, ctx context.Context, of holdfast.Outbox, id string, content body) (holdfast.Record, error)
}

func allDecided() []decided {
	return []decided{
		{"retry", "Retry a message", retryText, holdfast.VerbRequeue, reflect.TypeFor[api.RetryRequest](), `{"ttl":"24h"}`, (*Server).retry},
		{"discard", "Discard a message", discardText, holdfast.VerbDiscard, nil, "", (*Server).discard},
		{"run", "Run a message now", runText, holdfast.VerbReschedule, nil, "", (*Server).run},
		{"reschedule", "Reschedule a message", laterText, holdfast.VerbReschedule, reflect.TypeFor[api.RescheduleRequest](), `{"in":"2h"}`, (*Server).reschedule},
	}
}

// route is that of this node's messages.
func (d *decided) route() route {
	r := route{
		method: http.MethodPost, path: "/v1/messages/{id}/" + d.name, id: d.name + "-message", tag: "messages", role: api.Operate,
		summary: d.summary, description: d.text, problems: decisionProblems(d.verb), request: d.request, bodyRequired: d.verb == holdfast.VerbReschedule && d.request != nil,
	}
	if d.sample != "" {
		r.requestSample = json.RawMessage(d.sample)
	}
	return r
}

func (b *builder) decisions() {
	for _, d := range allDecided() {
		handle(b, d.route(), func(ctx context.Context, in *decisionInput) (*messageOutput, error) { return b.decided(ctx, &d, in) })
	}
}

func (s *Server) decided(ctx context.Context, d *decided, in *decisionInput) (*messageOutput, error) {
	r, err := d.do(s, ctx, s.Outbox, in.ID, in.Content)
	if err != nil {
		return nil, err
	}
	return &messageOutput{s.messageOf(r)}, nil
}

// siteDecisions are the same about messages of a site.
func (b *builder) siteDecisions() {
	for _, d := range allDecided() {
		there := d.route()
		there.description = "As POST " + there.path + ", at the site."
		there.path, there.id, there.tag = "/v1/sites/{site}/messages/{id}/"+d.name, d.name+"-site-message", "sites"
		there.summary, there.problems = d.summary+" of a site", relayed(decisionProblems(d.verb))
		handle(b, there, func(ctx context.Context, in *siteDecisionInput) (*messageOutput, error) {
			of, err := b.at(ctx, in.Site)
			if err != nil {
				return nil, err
			}
			r, err := d.do(b.Server, ctx, of, in.ID, in.Content)
			if err != nil {
				return nil, err
			}
			return b.messageThere(&r), nil
		})
	}
}

func (s *Server) retry(ctx context.Context, of holdfast.Outbox, id string, content body) (r holdfast.Record, err error) {
	var req api.RetryRequest
	faults, p := content.decode(&req)
	if p != nil {
		return r, p
	}
	requeue := holdfast.Requeue{Force: req.Force, Actor: actor(ctx)}
	if req.TTL == "none" {
		faults = append(faults, api.Fault{Field: "ttl", Value: req.TTL, Problem: "cannot be given to a message that had one; write a long time, such as 3650d"})
	} else if req.TTL != "" {
		ttl, fault := ttlOf(req.TTL)
		requeue.TTL, faults = ttl, append(faults, fault...)
	}
	if len(faults) > 0 {
		return r, api.Faulty(faults...)
	}
	return s.decide(ctx, of, id, holdfast.VerbRequeue, func(id holdfast.ID) (holdfast.Record, error) {
		return of.Requeue(ctx, id, requeue)
	})
}

func (s *Server) discard(ctx context.Context, of holdfast.Outbox, id string, _ body) (holdfast.Record, error) {
	return s.decide(ctx, of, id, holdfast.VerbDiscard, func(id holdfast.ID) (holdfast.Record, error) {
		return of.Discard(ctx, id, actor(ctx))
	})
}

func (s *Server) run(ctx context.Context, of holdfast.Outbox, id string, _ body) (holdfast.Record, error) {
	return s.rescheduleIn(ctx, of, id, 0)
}

func (s *Server) reschedule(ctx context.Context, of holdfast.Outbox, id string, content body) (r holdfast.Record, err error) {
	var req api.RescheduleRequest
	faults, p := content.decode(&req)
	if p != nil {
		return r, p
	}
	in, fault := waitUntil(&req, time.Now())
	if faults = append(faults, fault...); len(faults) > 0 {
		return r, api.Faulty(faults...)
	}
	return s.rescheduleIn(ctx, of, id, in)
}

func (s *Server) rescheduleIn(ctx context.Context, of holdfast.Outbox, id string, in time.Duration) (holdfast.Record, error) {
	return s.decide(ctx, of, id, holdfast.VerbReschedule, func(id holdfast.ID) (holdfast.Record, error) {
		return of.Reschedule(ctx, id, holdfast.Reschedule{In: in, Actor: actor(ctx)})
	})
}

// waitUntil is how long from now the request says.
func waitUntil(req *api.RescheduleRequest, now time.Time) (time.Duration, []api.Fault) {
	switch {
	case req.In == "" && req.At == "":
		return 0, []api.Fault{{Field: "in", Problem: "is missing; say in, such as 2h, or at, such as 2026-11-30T06:00:00Z"}}
	case req.In != "" && req.At != "":
		return 0, []api.Fault{{Field: "at", Value: api.Clip(req.At), Problem: "excludes in; leave one of them out"}}
	case req.In != "":
		in, problem := parseDuration(req.In)
		if problem != "" {
			return 0, []api.Fault{{Field: "in", Value: api.Clip(req.In), Problem: problem}}
		}
		return in, nil
	}
	at, err := time.Parse(time.RFC3339, req.At)
	if err != nil {
		return 0, []api.Fault{{Field: "at", Value: api.Clip(req.At), Problem: "is not an instant; write one such as 2026-11-30T06:00:00Z"}}
	}
	if at.Before(now) {
		return 0, []api.Fault{{Field: "at", Value: api.Clip(req.At), Problem: "is over; write a later one, or run the message now"}}
	}
	return at.Sub(now), nil
}

// done is the word for what a verb does.
func done(v holdfast.Verb) string {
	switch v {
	case holdfast.VerbRequeue:
		return "retried"
	case holdfast.VerbDiscard:
		return "discarded"
	case holdfast.VerbReschedule:
	}
	return "rescheduled"
}

// anyOf names states: "parked, expired or discarded".
func anyOf[T any](states []T) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = fmt.Sprint(s)
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// decide runs a person's decision and explains why it was refused.
func (s *Server) decide(ctx context.Context, of holdfast.Outbox, text string, verb holdfast.Verb, change func(holdfast.ID) (holdfast.Record, error)) (r holdfast.Record, err error) {
	id, p := parseID(text)
	if p != nil {
		return r, p
	}
	r, err = change(id)
	if errors.Is(err, holdfast.ErrState) {
		// Only to name the state: the decision itself has been made by the store.
		if r, err = of.Get(ctx, id); err != nil {
			return r, s.missing(ctx, "read the message", id, err)
		}
		only := fmt.Sprintf("only a message that is %s can be %s", anyOf(verb.States()), done(verb))
		if r.Discarding {
			only = "it is discarded already, and ends with the attempt that is under way"
		}
		return r, api.WrongState.Problem(fmt.Sprintf("message %s is %s; %s", id, r.State, only), api.Fault{Field: "state", Value: r.State.String(), Problem: only})
	}
	if err != nil {
		return r, s.missing(ctx, "change the message", id, err)
	}
	return r, nil
}
