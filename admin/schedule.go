package admin

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

// UsualSchedule offers the schedule of subscriptions without one of their own (WH-04).
type UsualSchedule struct{ *Service }

// usual returns the schedule that counts now.
func (h *Hub) usual() fanout.Schedule { return h.Book.UsualOr(h.Schedule) }

func scheduleOf(c fanout.Schedule) api.Schedule {
	return api.Schedule{Backoff: string(c.Backoff), Factor: formatDuration(c.Factor), Base: c.Base, Cap: formatDuration(c.Cap), Retries: &c.Retries}
}

// readSchedule reads a schedule. What is absent is as in base. field is what the names of its fields begin with.
func readSchedule(c *api.Schedule, base fanout.Schedule, field string) (own fanout.Schedule, faults []api.Fault) {
	own = base
	own.Backoff, own.Base = cmp.Or(fanout.Backoff(c.Backoff), own.Backoff), cmp.Or(c.Base, own.Base)
	duration := func(name, text string, into *time.Duration) {
		if text == "" {
			return
		}
		d, problem := parseDuration(text)
		if *into = d; problem != "" {
			faults = append(faults, api.Fault{Field: field + name, Value: api.Clip(text), Problem: problem})
		}
	}
	duration("factor", c.Factor, &own.Factor)
	duration("cap", c.Cap, &own.Cap)
	if c.Retries != nil {
		own.Retries = *c.Retries
	}
	return own, faults
}

// Words of UsualSchedule.
const (
	applyNext    = "next"
	applyWaiting = "waiting"

	fromConfiguration = "configuration"
	fromOperator      = "operator"

	mostTimetable = 100
)

// Get returns it.
func (s UsualSchedule) Get(ctx context.Context) (out api.UsualSchedule, err error) {
	hub, p := s.fanOut()
	if p != nil {
		return out, p
	}
	u, err := hub.Book.Store().Usual(ctx)
	if err != nil {
		return out, s.refuse(ctx, "read the schedule", err)
	}
	return s.show(&u), nil
}

func (s UsualSchedule) show(u *fanout.Usual) api.UsualSchedule {
	schedule, out := u.Or(s.Hub.Schedule), api.UsualSchedule{From: fromConfiguration}
	if u.Version != 0 {
		out = api.UsualSchedule{From: fromConfiguration, Actor: u.Actor, Changed: instant(u.Changed), Version: strconv.FormatInt(u.Version, 10), Moving: u.Rounds > 0, Apply: applyNext}
		if u.Waiting {
			out.Apply = applyWaiting
		}
	}
	if u.Set() {
		out.From = fromOperator
	}
	c := scheduleOf(schedule)
	out.Backoff, out.Factor, out.Base, out.Cap, out.Retries, out.Timetable = c.Backoff, c.Factor, c.Base, c.Cap, c.Retries, timetable(schedule)
	return out
}

func timetable(c fanout.Schedule) []api.PlannedAttempt {
	policy, after := c.Policy(), time.Duration(0)
	list := []api.PlannedAttempt{{Attempt: 1, Wait: "0s", After: "0s"}}
	for n := range min(c.Retries, mostTimetable-1) {
		wait := policy.Wait(n)
		after += wait
		list = append(list, api.PlannedAttempt{Attempt: n + 2, Wait: formatDuration(wait), After: formatDuration(after)})
	}
	return list
}

// Put replaces it, if the conditions hold. What the request leaves out is as this node is configured.
func (s UsualSchedule) Put(ctx context.Context, spec *api.UsualScheduleSpec, only Conditions, wrong ...api.Fault) (out api.UsualSchedule, err error) {
	hub, p := s.fanOut()
	if p != nil {
		return out, p
	}
	schedule, faults := readSchedule(&api.Schedule{Backoff: spec.Backoff, Factor: spec.Factor, Base: spec.Base, Cap: spec.Cap, Retries: spec.Retries}, hub.Schedule, "")
	for _, f := range api.FaultsOf(schedule.Validate()) {
		f.Field = strings.TrimPrefix(f.Field, "schedule.")
		faults = append(faults, f)
	}
	if faults = slices.Concat(wrong, faults, checkApply(spec.Apply)); len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	return s.change(ctx, fanout.Usual{Schedule: schedule}, spec.Version, spec.Apply, only)
}

// Reset gives up the schedule that an operator has set, if the conditions hold: that of each node's configuration
// holds again.
func (s UsualSchedule) Reset(ctx context.Context, apply string, only Conditions) (out api.UsualSchedule, err error) {
	if _, p := s.fanOut(); p != nil {
		return out, p
	}
	if faults := checkApply(apply); len(faults) > 0 {
		return out, api.Faulty(faults...)
	}
	return s.change(ctx, fanout.Usual{GivenUp: true}, "", apply, only)
}

func checkApply(apply string) []api.Fault {
	if apply == "" || apply == applyNext || apply == applyWaiting {
		return nil
	}
	return []api.Fault{{Field: "apply", Value: api.Clip(apply), Problem: "must be next or waiting"}}
}

func (s UsualSchedule) change(ctx context.Context, to fanout.Usual, seen, apply string, only Conditions) (out api.UsualSchedule, err error) {
	hub, waiting := s.Hub, apply == applyWaiting
	return anew(s.Service, func() (api.UsualSchedule, error) {
		old, err := hub.Book.Store().Usual(ctx)
		if err != nil {
			return out, s.refuse(ctx, "read the schedule", err)
		}
		is := state{what: "the schedule", name: "of subscriptions", exists: old.Version != 0, version: strconv.FormatInt(old.Version, 10), seen: seen}
		if is.exists && old.Schedule == to.Schedule && old.GivenUp == to.GivenUp && (!waiting || old.Rounds > 0) {
			is.wanted = is.version
		}
		if p := only.check(is); p != nil {
			return out, p
		}
		if is.same() || to.GivenUp && !is.exists {
			return s.show(&old), nil
		}
		next := old.Replaced(to.Schedule, old.Or(hub.Schedule), waiting)
		next.GivenUp = to.GivenUp
		if _, err := hub.Book.Store().PutUsual(ctx, next, Actor(ctx)); err != nil {
			return out, s.notStored(ctx, "store the schedule", err)
		}
		return s.Get(ctx)
	})
}
