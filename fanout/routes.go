package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Routes gives a dispatcher a route for each subscription, with slots of its own, so that one that is down
// does not hold up the others, and each message keeps its own schedule. It follows the book: a change
// takes effect within about a second, one that was made through this book at once. A subscription that is
// not active is paused in the dispatcher: its messages wait, and go in their order when it is resumed. The
// messages of a deleted one park.
type Routes struct {
	Book       *Book
	Dispatcher *holdfast.Dispatcher // with Lanes; its maker runs it
	// Deliverer returns the deliverer of one subscription. ask returns that as it is at the attempt.
	Deliverer func(ask func(ctx context.Context) (Subscription, error)) holdfast.Deliverer
	Disabler  *Disabler            // is told what comes of attempts; nil: nobody is
	Gone      func(err error) bool // reports whether a failure says that the subscriber wants no more
	Schedule  Schedule             // of subscriptions without one, until an operator sets the usual one
	Timeout   time.Duration        // of requests of subscriptions without one, as the deliverer has it
	Logger    *slog.Logger         // nil: nothing is logged

	couriers map[string]*courier // of Run
}

// ErrDeleted is wrapped by the failure of a message whose subscription was deleted.
var ErrDeleted = errors.New("the subscription was deleted")

// Subscriber is the actor where a subscriber has paused its own subscription.
const Subscriber = "subscriber"

// Run follows the book until ctx ends. Stop the dispatcher first: it keeps its routes. Run returns an error
// when the store has stopped.
func (r *Routes) Run(ctx context.Context) error {
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	r.couriers = map[string]*courier{}
	tick := time.NewTicker(freshFor)
	defer tick.Stop()
	forget := time.NewTicker(forgetEvery)
	defer forget.Stop()
	for {
		if err := r.follow(ctx); err != nil && ctx.Err() == nil {
			if errors.Is(err, holdfast.ErrClosed) {
				return err
			}
			r.Logger.ErrorContext(ctx, "subscriptions not followed", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-r.Book.ring:
		case <-forget.C:
			if err := r.Book.forget(ctx); err != nil && ctx.Err() == nil {
				r.Logger.WarnContext(ctx, "deleted subscriptions not forgotten", slog.Any("error", err))
			}
		}
	}
}

// follow brings the routes of what has changed up to date. After an error it begins again.
func (r *Routes) follow(ctx context.Context) error {
	changed, err := r.Book.changes(ctx)
	if err != nil || len(changed) == 0 {
		return err
	}
	paused := map[string]bool{}
	decisions, err := r.Dispatcher.Lanes.LaneDecisions(ctx)
	for _, d := range decisions {
		paused[d.Destination] = d.Paused
	}
	for id, s := range changed {
		if err == nil {
			err = r.serve(ctx, id, s, paused[Lane(id)])
		}
	}
	if err != nil {
		r.Book.again(changed)
	}
	return err
}

// serve sets the route of a subscription. One that must wait is paused before it has a route.
func (r *Routes) serve(ctx context.Context, id string, s *Subscription, paused bool) (err error) {
	lane := Lane(id)
	if s == nil { // no message refers to it any more
		delete(r.couriers, id)
		r.Disabler.forget(id)
		r.Dispatcher.RemoveRoute(lane)
		return nil
	}
	waits := !s.Gone && s.State != Active
	switch {
	case waits && !paused:
		err = r.Dispatcher.Pause(ctx, lane, cmp.Or(s.Actor, "system"))
	case !waits && paused:
		err = r.Dispatcher.Resume(ctx, lane, cmp.Or(s.Actor, "system"))
	}
	if err != nil {
		return err
	}
	c := r.couriers[id]
	if c == nil {
		c = &courier{routes: r, id: id, fate: r.Disabler.fate(id)}
		c.to = r.Deliverer(c.ask)
		r.couriers[id] = c
	}
	if _, err := r.Dispatcher.SetRoute(lane, r.route(s, c)); err != nil { // only a damaged file has such a one
		r.Logger.ErrorContext(ctx, "subscription not served", slog.String("subscription", id), slog.Any("error", err))
		r.Dispatcher.RemoveRoute(lane)
	}
	return nil
}

func (r *Routes) route(s *Subscription, c *courier) holdfast.Route {
	schedule := r.Book.UsualOr(r.Schedule)
	if s.Schedule != nil {
		schedule = *s.Schedule
	}
	limit := cmp.Or(s.Concurrency, DefaultConcurrency)
	timeout := cmp.Or(s.Timeout, r.Timeout) + margin
	return holdfast.Route{Deliverer: c, Retry: schedule.Policy(), Timeout: timeout, Limit: limit, ChargeAll: true, OwnSchedule: true}
}

// margin is how much longer an attempt may take than its request: it may wait for its turn first, and the
// deliverer keeps the time itself.
const margin = mostTurn + 5*time.Second

// courier delivers the messages of one subscription.
type courier struct {
	routes *Routes
	id     string
	to     holdfast.Deliverer
	limit  limiter
	fate   *fate
}

// Deliver implements holdfast.Deliverer.
func (c *courier) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	s, err := c.turn(ctx)
	if err != nil {
		return holdfast.Receipt{}, err
	}
	receipt, err := c.to.Deliver(ctx, m)
	c.routes.Disabler.note(c.fate, err)
	if err != nil && c.routes.Gone(err) {
		c.pause(ctx, &s)
	}
	return receipt, err
}

// turn waits until the subscription may be called, and returns it as it is then. If that takes long, or it is not active any more, the
// message goes back to the store, and its lane waits.
func (c *courier) turn(ctx context.Context) (Subscription, error) {
	for {
		s, err := c.ask(ctx)
		switch {
		case err != nil:
			return s, err
		case s.State != Active:
			return s, &holdfast.Failure{Outcome: holdfast.NotStarted, Code: s.State.String(), Err: fmt.Errorf("the subscription is %s", s.State)}
		case s.Rate == nil:
			return s, nil
		}
		wait := c.limit.take(*s.Rate, time.Now())
		switch {
		case wait <= 0:
			return s, nil
		case wait > mostTurn:
			return s, &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "rate", RetryAfter: min(wait, mostRest), Err: fmt.Errorf("its turn is in %s", wait.Round(time.Second))}
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return s, &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "rate", Err: fmt.Errorf("wait for the turn: %w", ctx.Err())}
		case <-t.C:
		}
	}
}

// ask returns the subscription as it is now.
func (c *courier) ask(ctx context.Context) (Subscription, error) {
	s, found, err := c.routes.Book.Subscription(ctx, c.id)
	switch {
	case err != nil:
		return s, &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "no_store", Err: err}
	case !found:
		return s, &holdfast.Failure{Outcome: holdfast.Permanent, Code: "no_subscription", Err: ErrDeleted}
	}
	return s, nil
}

// pause pauses the subscription in the name of its subscriber, before the message parks, unless it has another
// URL than was asked: what stands there has not answered. If the store fails, the next message asks again.
func (c *courier) pause(ctx context.Context, asked *Subscription) {
	var err error
	for range mostPauses {
		s, found, readErr := c.routes.Book.Subscription(ctx, c.id)
		if err = readErr; err != nil || !found || s.State != Active || s.URL != asked.URL {
			break
		}
		s.State, s.Why, s.Actor = Paused, "it answered 410: it wants no more", Subscriber
		if _, err = c.routes.Book.Store().PutSubscription(ctx, s, Subscriber); err == nil {
			c.routes.Logger.WarnContext(ctx, "a subscriber wants no more: its subscription is paused", slog.String("subscription", c.id))
		}
		if !errors.Is(err, holdfast.ErrState) { // else it was changed meanwhile
			break
		}
	}
	if err != nil {
		c.routes.Logger.ErrorContext(ctx, "subscription not paused", slog.String("subscription", c.id), slog.Any("error", err))
	}
}

// mostPauses bounds how often a pause is tried again because the subscription was changed meanwhile.
const mostPauses = 5
