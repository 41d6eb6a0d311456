package admin

import (
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// MaxWait is the longest time that a request may wait for the first outcome of its message.
const MaxWait = time.Minute

// waitOf returns how long a request wants to wait.
func (s *Service) waitOf(req *api.NewMessage) (time.Duration, []api.Fault) {
	d, _ := s.destination(req.Destination)
	later := req.AttemptImmediately != nil && !*req.AttemptImmediately
	if req.Wait == "" {
		if later {
			return 0, nil
		}
		return d.Wait, nil
	}
	wait, problem := parseDuration(req.Wait)
	switch {
	case problem != "":
	case wait > MaxWait:
		problem = "is longer than " + formatDuration(MaxWait) + "; ask GET /v1/messages/{id} for what takes longer"
	case wait > 0 && later:
		problem = "waits for an attempt, but attemptImmediately is false; leave one of them out"
	}
	if problem != "" {
		return 0, []api.Fault{{Field: "wait", Value: api.Clip(req.Wait), Problem: problem}}
	}
	return wait, nil
}

// firstOutcome puts the outcome of the first attempt into an answer.
func firstOutcome(out *api.Accepted, a *holdfast.AttemptInfo) {
	out.Outcome = a.Outcome.String()
	if a.Failure != nil {
		out.LastError = a.Failure.Error()
	}
	if a.State == holdfast.Delivered {
		out.Response, out.ResponseBase64 = payloadOf(a.Response)
		out.Note = a.Note
	}
}

// Causes of a refusal, for programs that must tell them apart (SF-03).
const (
	causeTarget      = "refused_by_target"
	causeDestination = "unknown_destination"
)

// endedBefore is the answer to a repeat of a message that ended without being delivered.
func endedBefore(e *holdfast.EndedError) *api.Problem {
	return api.WrongState.Problem(e.Error(), api.Fault{Field: "id", Value: string(e.ID), Problem: "belongs to a message that is " + e.State.String()}).Of(e)
}

// refusedBy is the answer for a message that the destination has refused for good.
func refusedBy(e *holdfast.RefusedError) *api.Problem {
	p := api.Refused.Problem(e.Error()).Of(e)
	p.Cause, p.Message, p.Code, p.TargetStatus = causeTarget, string(e.ID), e.Code, e.HTTPStatus()
	return p
}
