package notify

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-mq/holdfast"
)

// tally is the state of all recipients of a copy after an attempt.
type tally struct {
	accepted, deferred, refused int
	first                       Target // the first that did not accept; deferred ones come first
	maybe                       bool
}

// stand counts the recipients: those of this attempt, and those of earlier attempts who are still
// on the list.
func (r *round) stand() (t tally) {
	now := map[key]Target{}
	for _, target := range r.targets {
		now[key{target.Channel, target.Address}] = target
	}
	for _, p := range r.list.Recipients {
		k := key{p.Channel, p.Address}
		target, ok := now[k]
		if !ok {
			target, ok = r.done[k]
		}
		if p.Disabled && (!ok || target.Result != Accepted) || !r.covers(p.Channel) {
			continue
		}
		switch {
		case !ok || !r.over(target):
			if t.deferred++; t.deferred == 1 {
				t.first = target
			}
		case target.Result == Refused:
			if t.refused++; t.refused == 1 && t.deferred == 0 {
				t.first = target
			}
		case target.Result == Accepted:
			t.accepted++
		}
		t.maybe = t.maybe || ok && target.Maybe && target.Result != Accepted
	}
	return t
}

// verdict returns the outcome of the copy's message. Its text is logged and contains no addresses;
// those are in the targets.
func (r *round) verdict() (holdfast.Receipt, error) {
	t := r.stand()
	all := t.accepted + t.deferred + t.refused
	switch {
	case r.fault != nil && t.deferred > 0:
		f := *r.fault
		f.RetryAfter, f.MaybeDelivered, f.Served = max(f.RetryAfter, r.wait), f.MaybeDelivered || t.maybe, r.served
		if f.Outcome == holdfast.Permanent { // some may still be reached
			f.Outcome = holdfast.Transient
		}
		return holdfast.Receipt{}, &f
	case t.deferred > 0:
		return holdfast.Receipt{}, &holdfast.Failure{
			Code: codeOf(t.first), RetryAfter: r.wait, MaybeDelivered: t.maybe, Served: r.served,
			Err: fmt.Errorf("%d of %d recipients have not accepted yet: %s", t.deferred, all, said(t.first)),
		}
	case t.refused > 0 && (!r.list.Partial || t.accepted == 0):
		return holdfast.Receipt{}, &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: codeOf(t.first), Err: fmt.Errorf("%d of %d recipients refused: %s", t.refused, all, said(t.first)),
		}
	}
	response, err := json.Marshal(struct {
		Accepted int `json:"accepted"`
		Refused  int `json:"refused,omitempty"`
	}{t.accepted, t.refused})
	if err != nil {
		return holdfast.Receipt{}, fmt.Errorf("encode receipt: %w", err)
	}
	return holdfast.Receipt{ID: r.m.ID, State: holdfast.Delivered, Response: response}, nil
}

func codeOf(t Target) string {
	if t.Code == "" {
		return "refused"
	}
	return t.Code
}

// said returns the text of a recipient's server, without the recipient's address.
func said(t Target) string {
	if t.Address != "" {
		t.Text = strings.ReplaceAll(t.Text, t.Address, "…")
	}
	switch {
	case t.Code != "" && t.Text != "" && t.Code != t.Text:
		return t.Code + " " + t.Text
	case t.Text != "":
		return t.Text
	case t.Code != "":
		return t.Code
	}
	return "no reason was given"
}
