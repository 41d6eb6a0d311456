package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/notify"
)

// waitsFor says in words why a message has not been sent, or what would make it go on. It is empty if the
// message waits for nothing.
func (s *Service) waitsFor(ctx context.Context, r *holdfast.Record) string {
	return s.waitFor(ctx, r).text
}

// waitFor finds why a message has not been sent.
func (s *Service) waitFor(ctx context.Context, r *holdfast.Record) wait {
	if !r.HeldUntil.IsZero() && !r.Discarding {
		verb := "run"
		if r.State == holdfast.Parked {
			verb = "retry"
		}
		return wait{cause: causeDoubted, until: r.HeldUntil, text: fmt.Sprintf("held: its TTL is over by a clock that is doubted, for %s at most: %s or discard it, or set the clock right", inWords(time.Until(r.HeldUntil)), verb)}
	}
	switch r.State {
	case holdfast.Pending:
		if r.Discarding {
			return wait{cause: causeDiscarding, text: "it is discarded as soon as the process that dispatches has seen it"}
		}
		return s.pendingBecause(ctx, r)
	case holdfast.Claimed:
		w := wait{cause: causeAttempting, text: fmt.Sprintf("attempt %d is under way", r.Tries+1)}
		if r.Discarding {
			w.cause, w.text = causeDiscarding, w.text+"; it is discarded then, unless that delivers it"
		}
		return w
	case holdfast.Parked:
		return wait{cause: causeParked + string(r.Reason), text: fmt.Sprintf("parked (%s): retry or discard it", r.Reason)}
	case holdfast.Expired:
		return wait{cause: causeExpired, text: "its TTL ended before it was delivered: retry it with a new one, or discard it"}
	case holdfast.Delivered:
		return wait{cause: causeDelivered}
	case holdfast.Discarded:
	}
	return wait{cause: causeDiscarded}
}

func (s *Service) pendingBecause(ctx context.Context, r *holdfast.Record) wait {
	to := r.Message.Destination
	if channel, ok := notify.ChannelOf(to); ok && s.Channels != nil {
		return s.channelBecause(channel, r.Due, r.Tries)
	}
	d, known := s.destination(to)
	if id, ok := fanout.SubscriptionOf(to); ok && s.Hub != nil {
		var why wait
		if d.Retry, why = s.subscriptionBecause(ctx, id); why.text != "" {
			return why
		}
		known = true
	}
	if !known {
		return wait{cause: causeUnknown, of: to, text: fmt.Sprintf("destination %s is not configured on this node: configure it", to)}
	}
	lane, ok := s.lane(to)
	if ok && (lane.Decision.Paused || !lane.OwnSchedule && (lane.Held || !lane.Up)) {
		return laneBecause(ctx, lane)
	}
	if r.Message.OrderingKey != "" && r.Due.IsZero() {
		return wait{cause: causeOrdering, text: "waits for an earlier message of ordering key " + r.Message.OrderingKey}
	}
	if left := time.Until(r.Due); left > 0 {
		if r.Tries == 0 {
			return wait{cause: causeDelayed, until: r.Due, text: fmt.Sprintf("first attempt in %s: it was sent with a delay, or rescheduled", inWords(left))}
		}
		return wait{cause: causeRetry, until: r.Due, text: fmt.Sprintf("%s in %s", nextRetry(r, d.Retry), inWords(left))}
	}
	w := wait{cause: causeSlot, of: to, text: "due now; waits for a free slot of destination " + to}
	if lane.InFlight > 0 {
		w.text += fmt.Sprintf(", which has %d requests under way, the oldest for %s", lane.InFlight, inWords(lane.Oldest))
	}
	if r.Message.OrderingKey != "" {
		w.text += ", or for an earlier message of ordering key " + r.Message.OrderingKey
	}
	return w
}

// subscriptionBecause returns the retries of a subscription, or why its messages wait.
func (s *Service) subscriptionBecause(ctx context.Context, id string) (retry holdfast.RetryPolicy, why wait) {
	one, found := s.Hub.Book.Known(id)
	schedule := s.Hub.usual()
	why.of = id
	switch {
	case !found:
		why.cause, why.text = causeNoSubscriber, fmt.Sprintf("subscription %s was deleted: it parks when it is due", id)
		return retry, why
	case one.State != fanout.Active:
		why.cause, why.text = causeSubscription, fmt.Sprintf("subscription %s is %s since %s", id, one.State, one.Since.UTC().Format(time.RFC3339))
		if one.Why != "" {
			why.text += fmt.Sprintf(" (%s)", one.Why)
		}
		why.text += "; when it may go on: holdfast subscriptions resume " + shellWord(id)
		return retry, why
	case s.Hub.unready(id) != "":
		why.cause, why.text = causeUnready, "nobody is called: "+s.Hub.unready(id)
		if isSubscriber(ctx) { // what is wrong is for operators
			why.text = "nobody is called until the operator has set this node right"
		}
		return retry, why
	case one.Schedule != nil:
		schedule = *one.Schedule
	}
	return schedule.Policy(), wait{}
}

// Unserved says what to do about messages for destinations that no configuration names. There is at least one
// destination. The printed commands can be run as they are.
func Unserved(destinations []string) string {
	look := "holdfast messages ls --state pending --destination " + shellWord(destinations[0])
	return fmt.Sprintf("add them; or look with: %s; and discard all of them with: %s --all -q | xargs holdfast messages discard", look, look)
}

// shellWord quotes what a shell would interpret: a destination's name may hold any text.
func shellWord(s string) string {
	harmless := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/", r)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !harmless(r) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// nextRetry numbers the next retry against the budget. Uncharged attempts repeat a number: they do not use up
// the budget.
func nextRetry(r *holdfast.Record, destination holdfast.RetryPolicy) string {
	var policy holdfast.RetryPolicy
	if r.Message.Retry != nil {
		policy = *r.Message.Retry
	}
	policy = policy.Over(destination).Over(holdfast.DefaultRetry())
	n := max(r.Failures, 1)
	if policy.Attempts == holdfast.Unlimited {
		return fmt.Sprintf("retry %d (no limit)", n)
	}
	return fmt.Sprintf("retry %d of %d", n, policy.Attempts-1)
}

func laneBecause(ctx context.Context, l holdfast.LaneStatus) wait {
	if l.Decision.Paused {
		return wait{cause: causePaused, of: l.Destination, text: fmt.Sprintf("destination %s is paused by %s for %s: resume it", l.Destination, someone(ctx, l.Decision.Actor), inWords(time.Since(l.Decision.At)))}
	}
	w := wait{cause: causeLaneDown, of: l.Destination, fault: l.Problem, text: fmt.Sprintf("destination %s is %s", l.Destination, laneState(l))}
	if l.Held {
		w.cause = causeLaneHeld
	}
	if l.Problem != "" {
		w.text += " (" + l.Problem + ")"
	}
	if l.Since >= time.Second {
		w.text += " for " + inWords(l.Since)
	}
	if l.NextProbe > 0 {
		w.text += ", next probe in " + inWords(l.NextProbe)
		w.until = time.Now().Add(l.NextProbe)
	}
	return w
}

// laneState returns the word for how a lane fares.
func laneState(l holdfast.LaneStatus) string {
	switch {
	case l.Decision.Paused:
		return "paused"
	case l.Held:
		return "held"
	case !l.Up:
		return "down"
	}
	return "up"
}

// copyWaitsFor says why a copy of a notification has not been delivered yet.
func (s *Service) copyWaitsFor(c *notify.Record) string {
	if c.Discarding {
		return "its attempt is under way; it is discarded then, unless that delivers it"
	}
	return s.channelBecause(c.Channel, c.NextAttempt, c.Tries).text
}

// channelBecause says why a copy of a notification waits for its channel.
func (s *Service) channelBecause(channel string, due time.Time, tries int) wait {
	l, served := s.Channels.Status()[channel]
	w := wait{of: channel, fault: l.Problem}
	left := time.Until(due)
	switch {
	case channel == "":
		w.cause, w.text = causeChannelGone, "its list had no channel when it came: it is looked up again"
	case !served:
		w.cause, w.text = causeChannelGone, fmt.Sprintf("channel %s is disabled or deleted, or this node does not serve it yet", channel)
	case l.Held:
		w.cause, w.text = causeChannelHeld, fmt.Sprintf("channel %s is held (%s): fix that, then resume the channel", channel, l.Problem)
	case !l.Up && l.NextProbe > 0:
		w.cause, w.text = causeChannelDown, fmt.Sprintf("channel %s is in back-off (%s), next probe in %s", channel, l.Problem, inWords(l.NextProbe))
		w.until = time.Now().Add(l.NextProbe)
	case !l.Up:
		w.cause, w.text = causeChannelDown, fmt.Sprintf("channel %s is in back-off (%s)", channel, l.Problem)
	case left > 0 && tries == 0:
		w.cause, w.text, w.until = causeDelayed, "first attempt in "+inWords(left), due
	case left > 0:
		w.cause, w.text, w.until = causeRetry, "next attempt in "+inWords(left), due
	default:
		w.cause, w.text = causeSlot, fmt.Sprintf("due now; waits for a free slot of channel %s", channel)
	}
	return w
}
