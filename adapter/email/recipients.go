package email

import (
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email/smtp"
	"github.com/holdfast-mq/holdfast/notify"
)

// judge reads the replies to recipients, of whom each has one of its own. It
// notes who is taken, and returns what became of others, and what concerns all
// who are left: that the connection ends, or, where nobody was taken, who we are.
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
		case r.TooMany() && at > 0: // they are those of the next mail, at once (E5, E6)
			if !full { // those whom it refused count: there are servers that count them
				t.m.bears.Store(&learned{at, time.Now()})
			}
			full = true
		default:
			ends[i] = t.apartFrom(r)
		}
	}
	return ends, fault
}

// apartFrom is what became of one recipient who was not taken.
func (t *transaction) apartFrom(r reply) notify.Delivery {
	t.alien = t.alien || r.disowns()
	t.apart = t.apart || !r.system()
	d := r.delivery("RCPT", &t.s.scrub)
	if r.TooMany() {
		d.Outcome = notify.Deferred
	}
	return d
}

// settleAll takes recipients off the list of those to be asked.
func (t *transaction) settleAll(ends map[int]notify.Delivery) {
	for i, d := range ends {
		t.settle(i, d)
	}
}
