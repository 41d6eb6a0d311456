package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

type decideInput struct {
	ID      string `path:"id" doc:"The notification id; a UUID in any form."`
	Site    string `query:"site" doc:"The site that sent it. Absent: it is found, if only one site has sent this id."`
	Content body
}

type decidedOutput struct{ Body api.DecidedNotification }

// copyDecision is a person's decision about the copies of one notification: each is
// a message, and the verb is that of messages.
type copyDecision struct {
	verb    holdfast.Verb
	channel string // empty: all
	do      func(ctx context.Context, of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error)
}

// copyDecisions are the routes.
func (b *builder) copyDecisions() {
	for _, d := range []struct {
		name, summary, text string
		verb                holdfast.Verb
		request             reflect.Type
		sample              string
		handler             func(ctx context.Context, in *decideInput) (*decidedOutput, error)
	}{
		{
			"retry", "Retry a notification", "Its parked and discarded copies are pending again: due at once, and failures count from zero. Recipients who have accepted are not asked again; those who refused are.",
			holdfast.VerbRequeue, reflect.TypeFor[api.RetryNotification](), `{"channel":"mail"}`, b.retryNotification,
		},
		{
			"discard", "Discard a notification", "Gives up its copies that are not delivered. One that is being tried ends with that attempt, unless the attempt delivers it: discarding, until then. Their rows are kept for their retention.",
			holdfast.VerbDiscard, reflect.TypeFor[api.DiscardNotification](), `{"reason":"the alarm is over"}`, b.discardNotification,
		},
		{
			"run", "Run a notification now", "Makes its pending copies due at once; failures count on. A channel that is held or in back-off is waited for. Of a copy that is being tried it holds for the retry.",
			holdfast.VerbReschedule, reflect.TypeFor[api.RunNotification](), `{"channel":"mail"}`, b.runNotification,
		},
		{
			"reschedule", "Reschedule a notification", "Says when its pending copies are tried next. Of one that is being tried it holds for the retry, whatever that attempt comes to.",
			holdfast.VerbReschedule, reflect.TypeFor[api.RescheduleNotification](), `{"in":"2h"}`, b.rescheduleNotification,
		},
	} {
		handle(b, route{
			method: http.MethodPost, path: "/v1/notifications/{id}/" + d.name, id: d.name + "-notification", tag: "notifications", role: api.Operate,
			summary: d.summary, description: d.text, request: d.request, requestSample: json.RawMessage(d.sample), bodyRequired: d.name == "reschedule",
			problems: map[api.Sort]string{
				api.NotFound: "No such notification is kept.", api.Conflict: severalSites, api.WrongState: "No copy of it is " + anyOf(statusesFor(d.verb)) + "; the problem names what they are.",
				api.DiskFull: "The disk is full; nothing was changed.", api.Unsupported: unsupportedNotify,
			},
		}, d.handler)
	}
}

func (s *Server) retryNotification(ctx context.Context, in *decideInput) (*decidedOutput, error) {
	var req api.RetryNotification
	if faults, p := in.Content.decode(&req); p != nil || len(faults) > 0 {
		return nil, orInvalid(p, faults)
	}
	return s.decideCopies(ctx, in, copyDecision{holdfast.VerbRequeue, req.Channel, func(ctx context.Context, of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error) {
		return of.Requeue(ctx, id, holdfast.Requeue{Actor: actor(ctx)})
	}})
}

func (s *Server) discardNotification(ctx context.Context, in *decideInput) (*decidedOutput, error) {
	var req api.DiscardNotification
	faults, p := in.Content.decode(&req)
	if faults = append(faults, checkLine("reason", req.Reason, mostLongText)...); p != nil || len(faults) > 0 {
		return nil, orInvalid(p, withoutRepeats(faults))
	}
	out, err := s.decideCopies(ctx, in, copyDecision{holdfast.VerbDiscard, req.Channel, func(ctx context.Context, of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error) {
		return of.Discard(ctx, id, actor(ctx))
	}})
	if err == nil {
		s.log().LogAttrs(ctx, slog.LevelInfo, "notification discarded",
			slog.String("message_id", out.Body.ID), slog.String("site", out.Body.Site), slog.String("actor", actor(ctx)), slog.String("reason", req.Reason))
	}
	return out, err
}

func (s *Server) runNotification(ctx context.Context, in *decideInput) (*decidedOutput, error) {
	var req api.RunNotification
	if faults, p := in.Content.decode(&req); p != nil || len(faults) > 0 {
		return nil, orInvalid(p, faults)
	}
	return s.rescheduleCopies(ctx, in, req.Channel, 0)
}

func (s *Server) rescheduleNotification(ctx context.Context, in *decideInput) (*decidedOutput, error) {
	var req api.RescheduleNotification
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	when := api.RescheduleRequest{In: req.In, At: req.At}
	wait, wrong := waitUntil(&when, time.Now())
	if faults = append(faults, wrong...); len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	return s.rescheduleCopies(ctx, in, req.Channel, wait)
}

func (s *Server) rescheduleCopies(ctx context.Context, in *decideInput, channel string, wait time.Duration) (*decidedOutput, error) {
	return s.decideCopies(ctx, in, copyDecision{holdfast.VerbReschedule, channel, func(ctx context.Context, of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error) {
		return of.Reschedule(ctx, id, holdfast.Reschedule{In: wait, Actor: actor(ctx)})
	}})
}

// orInvalid is the problem of a body that cannot be read, or those of its fields.
func orInvalid(p *api.Problem, faults []api.Fault) *api.Problem {
	if p != nil {
		return p
	}
	return api.Faulty(faults...)
}

// decideCopies runs a decision about each copy. The state in the store at that
// moment counts: a copy of which it cannot be so is left as it is.
func (s *Server) decideCopies(ctx context.Context, in *decideInput, d copyDecision) (*decidedOutput, error) {
	copies, p := s.copies(ctx, in.Site, in.ID)
	if p != nil {
		return nil, p
	}
	if d.channel != "" && !slices.ContainsFunc(copies, func(r notify.Record) bool { return r.Channel == d.channel }) {
		return nil, api.Faulty(api.Fault{Field: "channel", Value: api.Clip(d.channel), Problem: "has no copy of this notification"})
	}
	n := &copies[0].Notification
	out := api.DecidedNotification{ID: string(n.ID), Site: n.Origin.Site}
	var changed, found []string
	for i := range copies {
		c, gone, err := s.decideCopy(ctx, &copies[i], &d)
		if err != nil {
			return nil, s.halfway(ctx, copies[i].Message, changed, done(d.verb), err)
		}
		if c.Changed {
			changed = append(changed, c.Channel)
		}
		if d.about(&copies[i]) {
			found = append(found, standsAs(&c, gone))
		}
		out.Copies = append(out.Copies, c)
	}
	if len(changed) == 0 {
		is, only := strings.Join(found, ", "), fmt.Sprintf("only what is %s can be %s", anyOf(statusesFor(d.verb)), done(d.verb))
		return nil, api.WrongState.Problem(fmt.Sprintf("notification %s is %s; %s", out.ID, is, only), api.Fault{Field: "status", Value: is, Problem: only})
	}
	return &decidedOutput{out}, nil
}

// about says whether the decision is about this copy.
func (d *copyDecision) about(c *notify.Record) bool { return d.channel == "" || d.channel == c.Channel }

// standsAs says in words why nothing was changed.
func standsAs(c *api.DecidedCopy, gone bool) string {
	switch {
	case gone:
		return c.Status + " for so long that its message is not kept any more"
	case c.Discarding:
		return c.Status + " and discarded with the attempt under way"
	}
	return c.Status
}

// decideCopy runs it about one, which says how it stands then; gone: its message
// is purged.
func (s *Server) decideCopy(ctx context.Context, of *notify.Record, d *copyDecision) (c api.DecidedCopy, gone bool, err error) {
	c = api.DecidedCopy{Channel: of.Channel, Message: string(of.Message), Status: string(of.Status), Discarding: of.Discarding, NextAttempt: instant(of.NextAttempt)}
	if of.Status == notify.Delivered || !d.about(of) {
		return c, false, nil
	}
	r, err := d.do(ctx, s.Outbox, of.Message)
	c.Changed = err == nil
	if errors.Is(err, holdfast.ErrState) {
		r, err = s.Outbox.Get(ctx, of.Message) // only to name the state
	}
	if errors.Is(err, holdfast.ErrNotFound) {
		return c, true, nil
	}
	c.Status, c.Discarding, c.NextAttempt = statusOfRecord(&r), r.Discarding, instant(r.Due)
	return c, false, err
}

// statusesFor are those of copies from which a verb starts.
func statusesFor(v holdfast.Verb) (list []notify.Status) {
	for _, state := range v.States() {
		for tries := range 2 {
			if status := notify.StatusOf(state, tries); !slices.Contains(list, status) {
				list = append(list, status)
			}
		}
	}
	return list
}

// halfway says what was done before an error. To repeat the request is safe.
func (s *Server) halfway(ctx context.Context, id holdfast.ID, changed []string, done string, err error) *api.Problem {
	p := s.missing(ctx, "change the notification", id, err)
	if len(changed) > 0 {
		p.Detail = fmt.Sprintf("the copies over %s were %s; then: %s", strings.Join(changed, ", "), done, p.Detail)
	}
	return p
}
