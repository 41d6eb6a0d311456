package site

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/track"
)

// Channel is the way of an attempt out of the site, in the words of the audit (SF-24).
type Channel string

// The channels.
const (
	APIOutbound Channel = "ApiOutbound" // a call of a foreign system
	DBOutbound  Channel = "DbOutbound"  // a write to a foreign database
)

// Outcome is the outcome of an attempt, in the words of the audit (SF-24).
type Outcome string

// The outcomes.
const (
	OutcomeDelivered        Outcome = "Delivered"
	OutcomeTransientFailure Outcome = "TransientFailure"
	OutcomePermanentFailure Outcome = "PermanentFailure"
	OutcomeParked           Outcome = "ParkedMaxRetries" // a transient failure that used up the retries
)

// Attempt is one attempt of a call, with the state of the call after it: what auditing and tracking need, in
// one packet (SF-24, SF-34).
type Attempt struct {
	ID          holdfast.ID // of the operation
	Channel     Channel
	Category    holdfast.Category
	Destination string
	Endpoint    string
	Outcome     Outcome
	Status      track.Status  // of the operation after it
	Retries     int           // attempts after the first of its cycle, this one included
	Code        string        // code of a failure, such as "http_422"
	HTTPStatus  int           // of a failure; 0: none
	Error       string        // empty: delivered
	Origin      notify.Origin // with the site's name, if it has one (SF-33), and the trace
	Created     time.Time     // when the call was taken
	Occurred    time.Time     // when the attempt began (SF-33); zero: the target was not called
	Took        time.Duration
}

// Target returns the destination and the endpoint as one text, for people.
func (a *Attempt) Target() string { return a.Destination + " / " + a.Endpoint }

// attemptOf makes an Attempt. It returns false for what is no call, such as a notification to central (SF-33).
func (s *Site) attemptOf(a *holdfast.AttemptInfo) (Attempt, bool) {
	category, tracked := s.category(a.Destination)
	if !tracked {
		return Attempt{}, false
	}
	r := holdfast.Record{State: a.State, Tries: a.Retries + 1, Cycle: a.Cycle, Reason: a.Reason}
	out := Attempt{
		ID: a.ID, Channel: APIOutbound, Category: category, Destination: a.Destination, Endpoint: a.Endpoint, Outcome: outcomeOf(a),
		Status: track.StatusOf(&r), Retries: a.Retries, Origin: notify.OriginOf(a.Headers), Created: a.Created, Occurred: a.Began, Took: a.Took,
	}
	if category == holdfast.CategoryCachedDBWrite {
		out.Channel = DBOutbound
	}
	if a.Source != notify.UnknownSite {
		out.Origin.Site = a.Source
	}
	if a.Failure != nil {
		out.Code, out.HTTPStatus, out.Error = a.Failure.Code, holdfast.HTTPStatus(a.Failure.Code), a.Failure.Error()
	}
	return out, true
}

func outcomeOf(a *holdfast.AttemptInfo) Outcome {
	switch {
	case a.Outcome == holdfast.Succeeded:
		return OutcomeDelivered
	case a.Outcome == holdfast.Permanent:
		return OutcomePermanentFailure
	case a.State == holdfast.Parked:
		return OutcomeParked
	}
	return OutcomeTransientFailure
}

// told is how many attempts may wait for OnAttempt.
const told = 1024

// teller calls OnAttempt beside the dispatcher, one attempt after the other. A slow, failing or panicking
// function changes nothing but the number of failures.
type teller struct {
	tell     func(ctx context.Context, a Attempt) error
	queue    chan Attempt
	failures atomic.Int64
	log      *slog.Logger
}

// add puts an attempt into the queue. If the queue is full, the attempt is lost and counted.
func (t *teller) add(a Attempt) {
	select {
	case t.queue <- a:
	default:
		t.failures.Add(1)
	}
}

// run tells until ctx ends, and then what is in the queue, for at most the grace.
func (t *teller) run(ctx context.Context, grace time.Duration) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for work.Err() == nil {
			select {
			case a := <-t.queue:
				t.one(work, &a)
				continue
			default:
			}
			select {
			case a := <-t.queue:
				t.one(work, &a)
			case <-ctx.Done():
				return // the dispatcher has ended, and the queue is empty
			case <-work.Done():
				return
			}
		}
	}()
	<-ctx.Done()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		lost := int64(len(t.queue))
		t.failures.Add(lost)
		t.log.WarnContext(ctx, "observer did not end in time", slog.Int64("lost", lost))
	}
	return nil
}

func (t *teller) one(ctx context.Context, a *Attempt) {
	defer func() {
		if p := recover(); p != nil {
			t.failed(ctx, a, fmt.Errorf("it panicked: %v", p))
		}
	}()
	if err := t.tell(ctx, *a); err != nil {
		t.failed(ctx, a, err)
	}
}

func (t *teller) failed(ctx context.Context, a *Attempt, err error) {
	t.failures.Add(1)
	t.log.WarnContext(ctx, "observer of attempts failed", slog.String("message_id", string(a.ID)), slog.Any("error", err))
}

// ObserverFailures returns how often an observer has failed: Config.Observer by a panic, Config.OnAttempt by a
// panic, an error, or an attempt that it was too slow to be told of.
func (s *Site) ObserverFailures() int64 {
	n := s.dispatcher.ObserverFailures()
	if s.teller != nil {
		n += s.teller.failures.Load()
	}
	return n
}
