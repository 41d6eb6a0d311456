package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// Causes of a wait. A parked message has causeParked and its reason.
const (
	causeAttempting   = "attempting"
	causeRetry        = "retry"
	causeDelayed      = "delayed"
	causeSlot         = "slot"
	causeOrdering     = "ordering"
	causePaused       = "paused"
	causeLaneHeld     = "lane_held"
	causeLaneDown     = "lane_down"
	causeUnknown      = "unknown_destination"
	causeChannelGone  = "channel_gone"
	causeChannelHeld  = "channel_held"
	causeChannelDown  = "channel_down"
	causeSubscription = "subscription_paused"
	causeNoSubscriber = "subscription_gone"
	causeUnready      = "node_unready"
	causeDoubted      = "doubted_clock"
	causeDiscarding   = "discarding"
	causeParked       = "parked_"
	causeExpired      = "expired"
	causeDelivered    = "delivered"
	causeDiscarded    = "discarded"
)

// wait is why a message has not been delivered, or what would make it go on.
type wait struct {
	cause string
	text  string    // one line; empty: it waits for nothing
	of    string    // the destination, channel or subscription that is the cause
	until time.Time // zero: not known
	fault string    // what is wrong there
}

// verb is something that a person can do, before it is known who asks.
type verb struct{ verb, of string }

// Things that verbs are about.
const (
	ofMessage      = "message"
	ofDestination  = "destination"
	ofChannel      = "channel"
	ofSubscription = "subscription"
	ofNode         = "node"
)

// situationOf tells a caller about a message. The wait is what waitFor says of it.
func situationOf(ctx context.Context, r *holdfast.Record, w *wait) *api.Situation {
	because, next, verbs := explained(r, w)
	if r.State != holdfast.Delivered && maybeReceived(r) {
		because += " It may have arrived all the same: an attempt sent it, and no answer came."
	}
	s := &api.Situation{Cause: w.cause, Because: because, Next: next, At: instant(w.until), Actions: []api.Action{}}
	if isSubscriber(ctx) { // what it may do, it does about its subscription
		return s
	}
	may := Granted(ctx)
	for _, v := range verbs {
		s.Actions = append(s.Actions, v.action(r, w, &may))
	}
	return s
}

// maybeReceived reports whether an attempt of the cycle may have delivered the message.
func maybeReceived(r *holdfast.Record) bool {
	return slices.ContainsFunc(r.History, func(e holdfast.Entry) bool { return e.Kind == holdfast.Attempted && e.Cycle == r.Cycle && e.Maybe })
}

func (v verb) action(r *holdfast.Record, w *wait, may *api.Grant) api.Action {
	a := api.Action{Verb: v.verb, Of: v.of, Name: w.of, Allowed: true}
	id := string(r.Message.ID)
	if v.of == ofMessage {
		a.Name, a.Command = id, "holdfast messages "+v.verb+" "+shellWord(id)
	}
	switch {
	case v.of == ofNode:
		a.Name = ""
		a.Text = "Have the node's clock set right on its machine."
		if w.cause != causeDoubted {
			a.Text = "Set this right in the node's configuration, and reload it."
		}
		return a
	case v.of == ofChannel && v.verb == "configure":
		if a.Text = "Name a channel in its list, and create that."; w.of != "" {
			a.Text, a.Command = fmt.Sprintf("Create or enable channel %s.", w.of), "holdfast channels set "+shellWord(w.of)
		}
		if !may.Can(api.Admin) {
			a.Allowed, a.Why = false, "needs the right admin"
		} else if !may.Whole() {
			a.Allowed, a.Why = false, "needs a token that is not narrowed"
		}
		return a
	case v.verb == "configure":
		a.Text = fmt.Sprintf("Add %s %s to the configuration of the node, or correct its name there.", v.of, w.of)
		return a
	case v.verb == "resume":
		a.Text = fmt.Sprintf("Let %s %s go on: what waits is tried at once.", v.of, w.of)
		a.Command = "holdfast " + v.of + "s resume " + shellWord(w.of)
	case v.verb == "retry":
		a.Text = "Send it again, with all its attempts from the start. Mend the cause first."
		if r.Reason == holdfast.ReasonTooOld {
			a.Text = "Send it again although the receiver may have processed it, and would not know."
			a.Command += " --force"
		}
		if r.State == holdfast.Expired {
			a.Text = "Send it again, with its time to live from the start."
		}
	case v.verb == "run":
		a.Text = "Try it at once."
	case v.verb == "reschedule":
		a.Text = "Choose another time for its next attempt."
		a.Command += " --in 1h"
	case v.verb == "discard":
		a.Text = "Give it up: it is not sent any more."
	}
	if !may.Can(api.Operate) {
		a.Allowed, a.Why = false, "needs the right operate"
	}
	if a.Allowed && v.of == ofChannel && !may.Whole() {
		a.Allowed, a.Why = false, "needs a token that is not narrowed"
	}
	return a
}

// explained says in sentences why a message is where it is, what happens next, and what can be done.
func explained(r *holdfast.Record, w *wait) (because, next string, verbs []verb) {
	waiting := []verb{{"run", ofMessage}, {"reschedule", ofMessage}, {"discard", ofMessage}}
	discard := []verb{{"discard", ofMessage}}
	fault := ""
	if w.fault != "" {
		fault = ": " + w.fault
	}
	switch w.cause {
	case causeAttempting:
		return fmt.Sprintf("Attempt %d is under way.", r.Tries+1), "What becomes of it is recorded when the attempt ends.", discard
	case causeDiscarding:
		if r.State == holdfast.Pending {
			return "Somebody has given it up.", "It ends as soon as the process that sends it sees that.", nil
		}
		return "Somebody has given it up.", "It ends with the attempt under way, unless that delivers it.", nil
	case causeRetry:
		return "The last attempt failed" + colon(r.LastError) + ".", "It is tried again: " + w.text + ".", waiting
	case causeDelayed:
		return "It was sent with a delay, or somebody has chosen a later time.", "It is tried when that time has come.", waiting
	case causeSlot:
		return "It is due, and others of its destination are being sent.", "It is sent as soon as there is a free slot.", discard
	case causeOrdering:
		return fmt.Sprintf("An earlier message of ordering key %s has not ended, and they go one after the other.", r.Message.OrderingKey), "Its turn comes when that one was delivered or has ended otherwise.", discard
	case causePaused:
		return sentence(w.text), "Nothing is sent there until somebody resumes it.", append([]verb{{"resume", ofDestination}}, discard...)
	case causeLaneHeld:
		return fmt.Sprintf("Destination %s refuses everybody%s.", w.of, fault), "Nothing is sent until a probe succeeds. Mend what it says, then resume it.", append([]verb{{"resume", ofDestination}}, discard...)
	case causeLaneDown:
		return fmt.Sprintf("Destination %s does not answer%s.", w.of, fault), "The node probes it by itself, and sends what waits when it answers.", append([]verb{{"resume", ofDestination}}, discard...)
	case causeUnknown:
		return fmt.Sprintf("This node does not know destination %s.", w.of), "Nothing, until it is configured.", append([]verb{{"configure", ofDestination}}, discard...)
	case causeDoubted:
		again := verb{"run", ofMessage}
		if r.State == holdfast.Parked {
			again = verb{"retry", ofMessage}
		}
		return "Its time to live is over by a clock that the node doubts.", "It is neither sent nor ended until the clock is believed.", []verb{again, {"configure", ofNode}, {"discard", ofMessage}}
	}
	if because, next, verbs = explainedChannel(w, fault); because != "" {
		return because, next, verbs
	}
	return explainedEnd(r, w)
}

// explainedChannel says it of what waits for a channel or a subscription.
func explainedChannel(w *wait, fault string) (because, next string, verbs []verb) {
	discard := verb{"discard", ofMessage}
	switch w.cause {
	case causeChannelGone:
		return sentence(w.text), "Nothing, until the channel is there again.", []verb{{"configure", ofChannel}, discard}
	case causeChannelHeld:
		return fmt.Sprintf("Channel %s refuses everything%s.", w.of, fault), "The node probes it. Mend what it says, then resume it.", []verb{{"resume", ofChannel}, discard}
	case causeChannelDown:
		return fmt.Sprintf("Channel %s does not answer%s.", w.of, fault), "The node probes it by itself, and sends what waits when it answers.", []verb{{"resume", ofChannel}, discard}
	case causeSubscription:
		return sentence(w.text), "Its messages wait until it is resumed.", []verb{{"resume", ofSubscription}, discard}
	case causeNoSubscriber:
		return sentence(w.text), "It is set aside when it is due.", []verb{discard}
	case causeUnready:
		return sentence(w.text), "Nothing, until that is set right.", []verb{{"configure", ofNode}, discard}
	}
	return "", "", nil
}

// explainedEnd says it of what has ended, or was set aside.
func explainedEnd(r *holdfast.Record, w *wait) (because, next string, verbs []verb) {
	again := []verb{{"retry", ofMessage}, {"discard", ofMessage}}
	const person = "Nothing, until a person decides."
	said := colon(r.LastError)
	switch r.State {
	case holdfast.Delivered:
		return "It was delivered.", "Nothing more. It is deleted when its retention is over.", nil
	case holdfast.Expired:
		return "Its time to live ended before it was delivered.", person, again
	case holdfast.Discarded:
		if r.Reason == holdfast.ReasonRejected {
			return "It was refused at its first attempt, and its sender was told" + said + ".", "Nothing more.", again[:1]
		}
		return "Somebody has given it up.", "Nothing more.", again[:1]
	case holdfast.Parked:
	case holdfast.Pending, holdfast.Claimed:
		return sentence(cmp.Or(w.text, "it waits")), "It is tried when its turn comes.", again[1:]
	}
	switch r.Reason {
	case holdfast.ReasonExhausted:
		return fmt.Sprintf("All %d attempts that it has failed; the last one%s.", r.Failures, cmp.Or(said, " too")), person, again
	case holdfast.ReasonPermanent:
		return "The destination refused it for good" + said + ".", person + " Sent again as it is, it is refused again unless something was mended there.", again
	case holdfast.ReasonConflict:
		return "The receiver has another message with the same id.", person, again
	case holdfast.ReasonTooOld:
		return "It is older than the receiver remembers ids: sent now, it might be processed twice.", person, again
	case holdfast.ReasonTooLarge:
		return "It is larger than the receiver takes" + said + ".", person, again
	case holdfast.ReasonUndecodable:
		return "What is stored of it cannot be sent" + said + ".", person, again
	case holdfast.ReasonNoEndpoint:
		return fmt.Sprintf("The receiver does not know endpoint %s.", r.Message.Endpoint), person, again
	case holdfast.ReasonOperator, holdfast.ReasonRejected:
	}
	return fmt.Sprintf("It was set aside (%s)%s.", r.Reason, said), person, again
}

// colon adds what somebody said.
func colon(said string) string {
	if said == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(said, ".")
}

// sentence makes a sentence of a line.
func sentence(line string) string {
	if line == "" {
		return ""
	}
	return strings.ToUpper(line[:1]) + strings.TrimSuffix(line[1:], ".") + "."
}
