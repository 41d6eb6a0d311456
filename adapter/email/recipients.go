package email

import (
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email/smtp"
	"github.com/holdfast-mq/holdfast/notify"
)

// judge reads the replies to recipients; each recipient has one. It notes who was accepted, and
// returns what became of the others. It also returns a fault that concerns all remaining
// recipients: the connection ends, or, if nobody was accepted, we were refused ourselves.
func (t *transaction) judge(replies []smtp.Reply) (ends map[int]notify.Delivery, fault *holdfast.Failure) {
	ends = map[int]notify.Delivery{}
	nobody := !slices.ContainsFunc(replies, smtp.Reply.OK)
	full := false
	for at, said := range replies {
		r, i := reply{said}, t.batch[at]
		switch {
		case r.OK():
			t.taken = append(t.taken, i)
		case r.Closing():
			fault = r.failure("RCPT", &t.s.scrub, holdfast.Transient)
		case r.barred():
			if nobody && fault == nil {
				fault = r.entry("RCPT", &t.s.scrub)
			}
		case r.disowns() && nobody && t.m.spurned.Load() >= mostSpurned-1:
			t.alien = true
			if fault == nil {
				fault = r.spurned("RCPT", &t.s.scrub)
			}
		case r.TooMany() && at > 0: // the next mail is for them, at once (E5, E6)
			if !full { // refused recipients count too: some servers count them
				t.m.bears.Store(&learned{at, time.Now()})
			}
			full = true
		default:
			ends[i] = t.apartFrom(r)
		}
	}
	return ends, fault
}

// apartFrom returns what became of one recipient who was not accepted.
func (t *transaction) apartFrom(r reply) notify.Delivery {
	t.alien = t.alien || r.disowns()
	t.apart = t.apart || !r.system()
	d := r.delivery("RCPT", &t.s.scrub)
	if r.TooMany() {
		d.Outcome = notify.Deferred
	}
	return d
}

// settleAll settles recipients, so that they are not tried again.
func (t *transaction) settleAll(ends map[int]notify.Delivery) {
	for i, d := range ends {
		t.settle(i, d)
	}
}
