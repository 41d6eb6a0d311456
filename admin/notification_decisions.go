package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// RetryNotification is what POST /v1/notifications/{id}/retry takes.
type RetryNotification struct {
	Channel string `json:"channel,omitempty" doc:"Only the copy over this channel. Absent: all that are parked." example:"mail"`
}

// DiscardNotification is what POST /v1/notifications/{id}/discard takes.
type DiscardNotification struct {
	Channel string `json:"channel,omitempty" doc:"Only the copy over this channel. Absent: all that are parked." example:"mail"`
	Reason  string `json:"reason,omitempty" maxLength:"1024" doc:"Why, in one line. It goes into the node's log, with who decided." example:"the alarm is over"`
}

type decideInput struct {
	ID      string `path:"id" doc:"The notification id; a UUID in any form."`
	Site    string `query:"site" doc:"The site that sent it. Absent: it is found, if only one site has sent this id."`
	Content body
}

type decidedOutput struct{ Body DecidedNotification }

func (s *Server) retryNotification(ctx context.Context, in *decideInput) (*decidedOutput, error) {
	var req RetryNotification
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if len(faults) > 0 {
		return nil, invalid(faults...)
	}
	return s.decideCopies(ctx, in, req.Channel, "retried", func(id holdfast.ID) (holdfast.Record, error) {
		return s.Outbox.Requeue(ctx, id, holdfast.Requeue{Actor: actor(ctx)})
	})
}

func (s *Server) discardNotification(ctx context.Context, in *decideInput) (*decidedOutput, error) {
	var req DiscardNotification
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if faults = append(faults, checkLine("reason", req.Reason, mostLongText)...); len(faults) > 0 {
		return nil, invalid(withoutRepeats(faults)...)
	}
	out, err := s.decideCopies(ctx, in, req.Channel, "discarded", func(id holdfast.ID) (holdfast.Record, error) {
		return s.Outbox.Discard(ctx, id, actor(ctx))
	})
	if err == nil {
		s.log().LogAttrs(ctx, slog.LevelInfo, "notification discarded",
			slog.String("message_id", out.Body.ID), slog.String("site", out.Body.Site), slog.String("actor", actor(ctx)), slog.String("reason", req.Reason))
	}
	return out, err
}

// decideCopies runs a decision about each parked copy. The state in the store
// at that moment counts: a copy that somebody else was faster with is left.
func (s *Server) decideCopies(ctx context.Context, in *decideInput, channel, done string, change func(holdfast.ID) (holdfast.Record, error)) (*decidedOutput, error) {
	copies, p := s.copies(ctx, in.Site, in.ID)
	if p != nil {
		return nil, p
	}
	if channel != "" && !slices.ContainsFunc(copies, func(r notify.Record) bool { return r.Channel == channel }) {
		return nil, invalid(Fault{"channel", clip(channel), "has no copy of this notification"})
	}
	n := &copies[0].Notification
	out := DecidedNotification{ID: string(n.ID), Site: n.Origin.Site}
	var changed, found []string
	for i := range copies {
		c := DecidedCopy{Channel: copies[i].Channel, Message: string(copies[i].Message), Status: string(copies[i].Status)}
		if copies[i].Status == notify.Parked && (channel == "" || channel == c.Channel) {
			r, err := change(copies[i].Message)
			c.Changed = err == nil
			if errors.Is(err, holdfast.ErrState) {
				r, err = s.Outbox.Get(ctx, copies[i].Message) // only to name the state
			}
			if err != nil {
				return nil, s.halfway(ctx, copies[i].Message, changed, done, err)
			}
			c.Status = statusOfRecord(&r)
		}
		if c.Changed {
			changed = append(changed, c.Channel)
		}
		found = append(found, c.Status)
		out.Copies = append(out.Copies, c)
	}
	if len(changed) == 0 {
		is := strings.Join(found, ", ")
		return nil, kindState.problem(fmt.Sprintf("notification %s is %s; only what is parked can be %s", out.ID, is, done),
			Fault{Field: "status", Value: is, Problem: "only what is parked can be " + done})
	}
	return &decidedOutput{out}, nil
}

// halfway says what was done before an error. To repeat the request is safe.
func (s *Server) halfway(ctx context.Context, id holdfast.ID, changed []string, done string, err error) *Problem {
	p := s.missing(ctx, "change the notification", id, err)
	if len(changed) > 0 {
		p.Detail = fmt.Sprintf("the copies over %s were %s; then: %s", strings.Join(changed, ", "), done, p.Detail)
	}
	return p
}
