package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

// Subscriptions offers the subscriptions to events.
type Subscriptions struct{ *Service }

// visible reports whether the caller's scope has all that a subscription asks for.
func (s Subscriptions) visible(ctx context.Context, one *fanout.Subscription) bool {
	for _, topic := range one.Topics {
		if topic == "*" {
			topic = ""
		}
		if !s.sees(ctx, topic, one.ID) {
			return false
		}
	}
	return len(one.Topics) > 0 || Granted(ctx).Whole() // topics that are lost are in no scope
}

func (s Subscriptions) show(ctx context.Context, one *fanout.Subscription) api.Subscription {
	out := api.Subscription{
		ID: one.ID, Topics: one.Topics, Filter: one.Filter, Description: one.Description, URL: one.URL, Headers: one.Headers, Mode: one.Mode, Concurrency: one.Concurrency,
		Version: strconv.FormatInt(one.Version, 10), State: one.State.String(), Why: one.Why, Actor: someone(ctx, one.Actor), Since: instant(one.Since), Fault: one.Fault,
		Created: instant(one.Created), Changed: instant(one.Changed), Abonnement: showAbonnement(one.Abonnement),
	}
	if one.Timeout > 0 {
		out.Timeout = formatDuration(one.Timeout)
	}
	if one.Schedule != nil {
		own := scheduleOf(*one.Schedule)
		out.Schedule = &own
	}
	if r := one.Rate; r != nil {
		out.Rate = &api.Rate{Count: r.Count, Per: formatDuration(r.Per)}
	}
	showSecrets(&out, one.Settings)
	counts := s.Outbox.Counts().Lanes[fanout.Lane(one.ID)]
	out.Pending, out.Parked = &counts.Pending, &counts.Parked
	return out
}

// List returns a page of subscriptions.
func (s Subscriptions) List(ctx context.Context, after string, limit int) (out api.SubscriptionPage, err error) {
	hub, p := s.fanOut()
	if p != nil {
		return out, p
	}
	limit, out.Subscriptions = cmp.Or(limit, usualPage), []api.Subscription{}
	if only := Granted(ctx).Destinations; len(only) > 0 {
		return s.named(ctx, only, after, limit)
	}
	version, err := hub.Book.Version(ctx)
	for range mostLooks {
		if err != nil {
			break
		}
		size := max(limit, leastLook)
		var some []fanout.Subscription
		if some, err = hub.Book.Store().SubscriptionsAt(ctx, version, after, size); err != nil {
			break
		}
		for i := range some {
			if after = some[i].ID; !s.visible(ctx, &some[i]) {
				continue
			}
			if out.Subscriptions = append(out.Subscriptions, s.show(ctx, &some[i])); len(out.Subscriptions) == limit {
				if len(some) == size || i < len(some)-1 {
					out.Next = after
				}
				return out, nil
			}
		}
		if len(some) < size {
			return out, nil
		}
	}
	if err != nil {
		return out, s.refuse(ctx, "list subscriptions", err)
	}
	out.Next = after
	return out, nil
}

// A caller who may see few subscriptions of many gets a page that is not full, and where to go on.
const (
	leastLook = 500 // that are read at once
	mostLooks = 10  // for one page
)

// Get returns one subscription.
func (s Subscriptions) Get(ctx context.Context, id string) (out api.Subscription, err error) {
	one, err := s.find(ctx, id)
	if err != nil {
		return out, err
	}
	return s.show(ctx, &one), nil
}

func (s Subscriptions) find(ctx context.Context, id string) (one fanout.Subscription, err error) {
	hub, p := s.fanOut()
	if p != nil {
		return one, p
	}
	one, found, err := hub.Book.Subscription(ctx, id)
	if err != nil {
		return one, s.refuse(ctx, "read the subscription", err)
	}
	if !found || !s.visible(ctx, &one) {
		return one, noSubscription(id)
	}
	return one, nil
}

func noSubscription(id string) *api.Problem {
	return api.NotFound.Problem(fmt.Sprintf("there is no subscription %q", api.Clip(id)), api.Fault{Field: "id", Value: api.Clip(id), Problem: "is not the id of a subscription"})
}

// Put makes or replaces a subscription, if the conditions hold. An empty id makes one with a new id.
func (s Subscriptions) Put(ctx context.Context, id string, spec *api.SubscriptionSpec, only Conditions, wrong ...api.Fault) (out api.Subscription, err error) {
	if _, p := s.fanOut(); p != nil {
		return out, p
	}
	if id == "" {
		if id = spec.ID; id == "" {
			id = string(holdfast.NewID())
		}
		only.IfNoneMatch = "*"
	}
	one, faults := s.read(id, spec)
	if faults = slices.Concat(wrong, faults, api.FaultsOf(one.Validate())); len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	if !s.visible(ctx, &one) {
		return out, outside("topic", fmt.Sprint(one.Topics))
	}
	return anew(s.Service, func() (api.Subscription, error) { return s.replace(ctx, one, spec, only) })
}

func (s Subscriptions) replace(ctx context.Context, one fanout.Subscription, spec *api.SubscriptionSpec, only Conditions) (out api.Subscription, err error) {
	old, exists, err := s.Hub.Book.Subscription(ctx, one.ID)
	if err != nil {
		return out, s.refuse(ctx, "read the subscription", err)
	}
	if exists && !s.visible(ctx, &old) {
		return out, outside("subscription", one.ID)
	}
	if !exists {
		if err := s.unused(ctx, one.ID); err != nil {
			return out, err
		}
	}
	if faults := s.seal(&one, spec, old.Settings); len(faults) > 0 {
		return out, api.Faulty(faults...)
	}
	if faults := api.FaultsOf(s.Hub.Check(&one)); len(faults) > 0 {
		return out, api.Faulty(faults...)
	}
	is := state{what: "subscription", name: one.ID, exists: exists, version: strconv.FormatInt(old.Version, 10), seen: spec.Version}
	one.Version, one.State, one.Why, one.Actor = old.Version, old.State, old.Why, old.Actor
	if one.Abonnement == nil {
		one.Abonnement = old.Abonnement
	}
	if exists && reflect.DeepEqual(old.Topics, one.Topics) && string(old.Filter) == string(one.Filter) && reflect.DeepEqual(old.Settings, one.Settings) {
		is.wanted = is.version
	}
	if p := only.check(is); p != nil {
		return out, p
	}
	if is.same() {
		return s.show(ctx, &old), nil
	}
	if only.DryRun {
		out = s.show(ctx, &one)
		out.Version = ""
		return out, nil
	}
	return s.store(ctx, one)
}

func (s Subscriptions) store(ctx context.Context, one fanout.Subscription) (out api.Subscription, err error) {
	if _, err := s.Hub.Book.Store().PutSubscription(ctx, one, Actor(ctx)); err != nil {
		return out, s.notStored(ctx, "store the subscription", err)
	}
	return s.Get(ctx, one.ID)
}

// read turns a request into a subscription, and reports what it cannot read.
func (s Subscriptions) read(id string, spec *api.SubscriptionSpec) (one fanout.Subscription, faults []api.Fault) {
	duration := func(field, text string, into *time.Duration) {
		if text == "" {
			return
		}
		d, problem := parseDuration(text)
		if *into = d; problem != "" {
			faults = append(faults, api.Fault{Field: field, Value: api.Clip(text), Problem: problem})
		}
	}
	one = fanout.Subscription{ID: id, Topics: spec.Topics, Filter: spec.Filter, Settings: fanout.Settings{
		Description: spec.Description, URL: spec.URL, Headers: spec.Headers, Mode: spec.Mode, Concurrency: spec.Concurrency,
	}}
	readSecrets(spec, &one.Settings)
	if len(one.Filter) == 0 || string(one.Filter) == "null" {
		one.Filter = []byte("{}")
	}
	faults = append(faults, readAbonnement(spec, &one)...)
	duration("timeout", spec.Timeout, &one.Timeout)
	if c := spec.Schedule; c != nil {
		own, wrong := readSchedule(c, s.Hub.usual(), "schedule.")
		one.Schedule, faults = &own, append(faults, wrong...)
	}
	if r := spec.Rate; r != nil {
		one.Rate = &fanout.Rate{Count: r.Count}
		duration("rate.per", r.Per, &one.Rate.Per)
	}
	return one, faults
}

// Pause lets the messages of a subscription wait.
func (s Subscriptions) Pause(ctx context.Context, id string, req *api.StateChange, wrong ...api.Fault) (api.Subscription, error) {
	return s.setState(ctx, id, fanout.Paused, req, wrong...)
}

// Resume sends what waits.
func (s Subscriptions) Resume(ctx context.Context, id string, req *api.StateChange, wrong ...api.Fault) (api.Subscription, error) {
	return s.setState(ctx, id, fanout.Active, req, wrong...)
}

// Disable is Pause that takes no new messages either.
func (s Subscriptions) Disable(ctx context.Context, id string, req *api.StateChange, wrong ...api.Fault) (api.Subscription, error) {
	return s.setState(ctx, id, fanout.Disabled, req, wrong...)
}

func (s Subscriptions) setState(ctx context.Context, id string, to fanout.State, req *api.StateChange, wrong ...api.Fault) (out api.Subscription, err error) {
	if faults := slices.Concat(wrong, checkLine("reason", req.Reason, mostLongText)); len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	return anew(s.Service, func() (api.Subscription, error) {
		one, err := s.find(ctx, id)
		if err != nil {
			return out, err
		}
		if one.State == to && (to == fanout.Active || one.Actor != fanout.Subscriber || isSubscriber(ctx)) {
			return s.show(ctx, &one), nil // else an operator takes over: its subscriber may not undo it any more
		}
		if p := mayPass(ctx, &one); p != nil {
			return out, p
		}
		one.State, one.Why, one.Actor = to, req.Reason, Actor(ctx)
		if isSubscriber(ctx) {
			one.Actor = fanout.Subscriber
		}
		return s.store(ctx, one)
	})
}

// Delete removes a subscription, if the conditions hold. Its messages park when they are due.
func (s Subscriptions) Delete(ctx context.Context, id string, only Conditions) error {
	_, err := anew(s.Service, func() (struct{}, error) {
		one, err := s.find(ctx, id)
		if err != nil {
			return struct{}{}, err
		}
		if p := only.check(state{what: "subscription", name: id, exists: true, version: strconv.FormatInt(one.Version, 10)}); p != nil {
			return struct{}{}, p
		}
		err = s.Hub.Book.Store().DeleteSubscription(ctx, id, one.Version, Actor(ctx))
		if errors.Is(err, holdfast.ErrNotFound) {
			return struct{}{}, noSubscription(id)
		} else if err != nil {
			return struct{}{}, s.notStored(ctx, "delete the subscription", err)
		}
		return struct{}{}, nil
	})
	return err
}

// Test sends the subscriber an event that is not stored, and returns what it answered.
func (s Subscriptions) Test(ctx context.Context, id string, req *api.NewEvent, wrong ...api.Fault) (out api.TestExchange, err error) {
	if len(wrong) > 0 {
		return out, api.Faulty(withoutRepeats(wrong)...)
	}
	one, err := s.find(ctx, id)
	if err != nil {
		return out, err
	}
	e := eventFrom(ctx, req)
	if e.Topic == "" {
		e.Topic = "test"
	}
	if out, err = s.Hub.Try(ctx, &one, &e); err != nil {
		return out, s.refuse(ctx, "call the subscriber", err)
	}
	if out.Delivered && one.State != fanout.Active {
		out.Advice = fmt.Sprintf("it answers, and the subscription is %s: send what waits with: holdfast subscriptions resume %s", one.State, shellWord(id))
	}
	return out, nil
}
