package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// Each situation is said in sentences, and names what can be done about it.
func TestEverySituationIsExplained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r    holdfast.Record
		w    wait
		says string // in because or next
		can  string
	}{
		"under way":              {holdfast.Record{State: holdfast.Claimed, Tries: 1}, wait{cause: causeAttempting, text: "x"}, "Attempt 2 is under way.", "discard message"},
		"discarding":             {holdfast.Record{State: holdfast.Claimed}, wait{cause: causeDiscarding, text: "x"}, "ends with the attempt under way", ""},
		"discarding, no attempt": {holdfast.Record{State: holdfast.Pending}, wait{cause: causeDiscarding, text: "x"}, "It ends as soon as", ""},
		"retry":                  {holdfast.Record{LastError: "connection refused."}, wait{cause: causeRetry, text: "retry 3 of 5 in 12s"}, "failed: connection refused. It is tried again: retry 3 of 5 in 12s.", "run message, reschedule message, discard message"},
		"delayed":                {holdfast.Record{}, wait{cause: causeDelayed, text: "x"}, "a later time", "run message, reschedule message, discard message"},
		"slot":                   {holdfast.Record{}, wait{cause: causeSlot, text: "x", of: "erp"}, "free slot", "discard message"},
		"ordering":               {holdfast.Record{Message: holdfast.Message{OrderingKey: "k"}}, wait{cause: causeOrdering, text: "x"}, "ordering key k", "discard message"},
		"paused":                 {holdfast.Record{}, wait{cause: causePaused, of: "erp", text: "destination erp is paused by ann for 2h: resume it"}, "Destination erp is paused by ann", "resume destination, discard message"},
		"held":                   {holdfast.Record{}, wait{cause: causeLaneHeld, of: "erp", fault: "401"}, "Destination erp refuses everybody: 401.", "resume destination, discard message"},
		"down":                   {holdfast.Record{}, wait{cause: causeLaneDown, of: "erp", fault: "refused"}, "Destination erp does not answer: refused.", "resume destination, discard message"},
		"unknown":                {holdfast.Record{}, wait{cause: causeUnknown, of: "erp"}, "does not know destination erp", "configure destination, discard message"},
		"doubted":                {holdfast.Record{State: holdfast.Pending}, wait{cause: causeDoubted}, "a clock that the node doubts", "run message, configure node, discard message"},
		"doubted and parked":     {holdfast.Record{State: holdfast.Parked}, wait{cause: causeDoubted}, "a clock that the node doubts", "retry message, configure node, discard message"},
		"channel gone":           {holdfast.Record{}, wait{cause: causeChannelGone, of: "mail", text: "channel mail is deleted"}, "Channel mail is deleted.", "configure channel, discard message"},
		"channel held":           {holdfast.Record{}, wait{cause: causeChannelHeld, of: "mail", fault: "535 5.7.8"}, "Channel mail refuses everything: 535 5.7.8.", "resume channel, discard message"},
		"channel down":           {holdfast.Record{}, wait{cause: causeChannelDown, of: "mail"}, "Channel mail does not answer.", "resume channel, discard message"},
		"subscription paused":    {holdfast.Record{}, wait{cause: causeSubscription, of: "shop", text: "subscription shop is paused"}, "Subscription shop is paused.", "resume subscription, discard message"},
		"subscription gone":      {holdfast.Record{}, wait{cause: causeNoSubscriber, of: "shop", text: "subscription shop was deleted"}, "was deleted", "discard message"},
		"node unready":           {holdfast.Record{}, wait{cause: causeUnready, of: "shop", text: "nobody is called: no master key"}, "Nobody is called: no master key.", "configure node, discard message"},
		"delivered":              {holdfast.Record{State: holdfast.Delivered}, wait{cause: causeDelivered}, "It was delivered.", ""},
		"expired":                {holdfast.Record{State: holdfast.Expired}, wait{cause: causeExpired}, "time to live ended", "retry message, discard message"},
		"discarded":              {holdfast.Record{State: holdfast.Discarded, Reason: holdfast.ReasonOperator}, wait{cause: causeDiscarded}, "given it up", "retry message"},
		"rejected":               {holdfast.Record{State: holdfast.Discarded, Reason: holdfast.ReasonRejected, LastError: "no"}, wait{cause: causeDiscarded}, "its sender was told: no.", "retry message"},
		"exhausted":              {holdfast.Record{State: holdfast.Parked, Reason: holdfast.ReasonExhausted, Failures: 6, LastError: "busy"}, wait{cause: "parked_exhausted"}, "All 6 attempts that it has failed; the last one: busy.", "retry message, discard message"},
		"permanent":              {holdfast.Record{State: holdfast.Parked, Reason: holdfast.ReasonPermanent, LastError: "400"}, wait{cause: "parked_permanent"}, "refused it for good: 400.", "retry message, discard message"},
		"conflict":               {holdfast.Record{State: holdfast.Parked, Reason: holdfast.ReasonConflict}, wait{cause: "parked_conflict"}, "same id", "retry message, discard message"},
		"too old":                {holdfast.Record{State: holdfast.Parked, Reason: holdfast.ReasonTooOld}, wait{cause: "parked_too_old"}, "twice", "retry message, discard message"},
		"too large":              {holdfast.Record{State: holdfast.Parked, Reason: holdfast.ReasonTooLarge}, wait{cause: "parked_too_large"}, "larger", "retry message, discard message"},
		"undecodable":            {holdfast.Record{State: holdfast.Parked, Reason: holdfast.ReasonUndecodable}, wait{cause: "parked_undecodable"}, "cannot be sent", "retry message, discard message"},
		"no endpoint":            {holdfast.Record{State: holdfast.Parked, Reason: holdfast.ReasonNoEndpoint, Message: holdfast.Message{Endpoint: "E"}}, wait{cause: "parked_no_endpoint"}, "endpoint E", "retry message, discard message"},
		"of a newer release":     {holdfast.Record{State: holdfast.Parked, Reason: "flooded"}, wait{cause: "parked_flooded"}, "(flooded)", "retry message, discard message"},
	} {
		s := situationOf(t.Context(), &c.r, &c.w)
		var can []string
		for _, a := range s.Actions {
			can = append(can, a.Verb+" "+a.Of)
			if !a.Allowed || a.Text == "" || (a.Command == "") != (a.Verb == "configure" && a.Of != ofChannel) {
				t.Errorf("%s: action %+v", name, a)
			}
		}
		if !strings.Contains(s.Because+" "+s.Next, c.says) || !strings.HasSuffix(s.Because, ".") || !strings.HasSuffix(s.Next, ".") {
			t.Errorf("%s: %q %q, want %q", name, s.Because, s.Next, c.says)
		}
		if got := strings.Join(can, ", "); got != c.can {
			t.Errorf("%s: can %s, want %s", name, got, c.can)
		}
	}
}

// Who may not do it sees it all the same, and why not. A subscriber sees no verbs of operators.
func TestActionsSayWhoMay(t *testing.T) {
	t.Parallel()
	r := holdfast.Record{State: holdfast.Pending, Message: holdfast.Message{ID: "it's"}, Due: time.Now()}
	w := wait{cause: causeChannelHeld, of: "mail"}
	for name, c := range map[string]struct {
		may  api.Grant
		want []string
	}{
		"reader":   {api.Grant{Rights: []api.Right{api.Read}}, []string{"holdfast channels resume mail: needs the right operate", `holdfast messages discard 'it'\''s': needs the right operate`}},
		"narrowed": {api.Grant{Rights: []api.Right{api.Read, api.Operate}, Scope: api.Scope{Destinations: []string{"channel:mail"}}}, []string{"holdfast channels resume mail: needs a token that is not narrowed", `holdfast messages discard 'it'\''s': `}},
	} {
		var got []string
		for _, a := range situationOf(As(t.Context(), name, c.may), &r, &w).Actions {
			got = append(got, a.Command+": "+a.Why)
			if a.Allowed != (a.Why == "") {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if d := cmp.Diff(got, c.want); d != "" {
			t.Errorf("%s (-got +want):\n%s", name, d)
		}
	}
	gone := wait{cause: causeChannelGone, of: "mail", text: "x"}
	operator := api.Grant{Rights: []api.Right{api.Read, api.Operate}}
	if a := situationOf(As(t.Context(), "operator", operator), &r, &gone).Actions[0]; a.Allowed || a.Why != "needs the right admin" || a.Command != "holdfast channels set mail" {
		t.Errorf("of a channel that is gone: %+v", a)
	}
	gone.of = ""
	if a := situationOf(t.Context(), &r, &gone).Actions[0]; !a.Allowed || a.Command != "" || !strings.Contains(a.Text, "list") {
		t.Errorf("of a list without a channel: %+v", a)
	}
	subscriber := As(t.Context(), "visit", api.Grant{Rights: []api.Right{api.Portal}})
	if s := situationOf(subscriber, &r, &w); len(s.Actions) != 0 || s.Because == "" {
		t.Errorf("a subscriber is told %+v", s)
	}
}
