package email

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/notify"
)

// transaction is one mail.
type transaction struct {
	*run
	s     *session
	batch []int
	taken []int // recipients that the server has taken, if it takes the mail
	alien bool  // a recipient was refused because of the sender
	apart bool  // the server told recipients from each other, so that it works
	sound bool  // the session may be used again
	stop  func() bool
}

func (t *transaction) make(ctx context.Context) *holdfast.Failure {
	if size, ok := t.s.client.MaxMessageSize(); ok && size > 0 && len(t.mail) > size { // E57
		return &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: "too_large", Err: fmt.Errorf("the mail has %d bytes, and the server takes %d", len(t.mail), size),
		}
	}
	utf8 := slices.ContainsFunc(t.batch, t.wide)
	if offered, _ := t.s.client.Extension("SMTPUTF8"); utf8 && !offered { // E48
		for _, i := range t.batch {
			if t.wide(i) {
				t.settle(i, notify.Delivery{Outcome: notify.Refused, Code: "553 5.6.7", Text: "the server does not take addresses with other letters than ASCII before the @ (SMTPUTF8)"})
			}
		}
		t.batch, utf8 = slices.DeleteFunc(t.batch, t.wide), false
		if len(t.batch) == 0 {
			return nil
		}
	}
	err := t.s.client.Mail(t.m.settings.from.Address, &smtp.MailOptions{Size: int64(len(t.mail)), UTF8: utf8})
	if err != nil {
		return t.noMail(ctx, err)
	}
	if f := t.recipients(ctx); f != nil {
		return f
	}
	if len(t.taken) == 0 {
		if t.alien {
			t.m.spurned.Add(1)
		}
		t.served = t.served || t.apart
		t.sound = t.s.client.Reset() == nil
		return nil
	}
	return t.data(ctx)
}

// badSequence is the reply to a command that the server does not expect now (RFC
// 5321, section 4.2.3).
const badSequence = 503

// wide says whether an address needs SMTPUTF8.
func (t *transaction) wide(i int) bool { return !isASCII(t.addr[i]) }

// noMail says what became of a mail that was not begun. A connection that was
// used before and is gone is not a failure: another one is made (E29). Nor is one
// whose server means to be in the middle of another mail, which says nothing of
// this one.
func (t *transaction) noMail(ctx context.Context, err error) *holdfast.Failure {
	r, ok := replyOf(err)
	if !ok || r.closing() || r.code == badSequence {
		t.sound = false
		if t.s.reused && ctx.Err() == nil {
			return nil
		}
	}
	switch {
	case !ok:
		return lost(ctx, "MAIL", err, &t.s.scrub)
	case r.code == badSequence:
		return r.failure("MAIL", &t.s.scrub, holdfast.Transient)
	case r.barred():
		return r.entry("MAIL", &t.s.scrub)
	case r.permanent() && !r.oversize():
		if t.m.spurned.Add(1) >= mostSpurned {
			return r.spurned("MAIL", &t.s.scrub)
		}
		return r.failure("MAIL", &t.s.scrub, holdfast.Permanent)
	case r.permanent():
		return r.failure("MAIL", &t.s.scrub, holdfast.Permanent)
	}
	return r.failure("MAIL", &t.s.scrub, holdfast.Transient)
}

// mostSpurned is how many mails in a row may be refused because of their sender,
// which is the same in each: one or two may be a server's confusion or a
// notification's own fault; five park little, and are no accident.
const mostSpurned = 5

// recipients names them to the server, each of which has a reply of its own.
func (t *transaction) recipients(ctx context.Context) *holdfast.Failure {
	for answered, i := range t.batch {
		err := t.s.client.Rcpt(t.addr[i], nil)
		if err == nil {
			t.taken = append(t.taken, i)
			continue
		}
		r, ok := replyOf(err)
		switch {
		case !ok:
			t.sound = false
			return lost(ctx, "RCPT", err, &t.s.scrub)
		case r.closing():
			t.sound = false
			return r.failure("RCPT", &t.s.scrub, holdfast.Transient)
		case r.barred():
			t.sound = t.s.client.Reset() == nil
			return r.entry("RCPT", &t.s.scrub)
		case r.disowns() && len(t.taken) == 0 && t.m.spurned.Load() >= mostSpurned-1:
			t.sound = t.s.client.Reset() == nil
			t.m.spurned.Add(1)
			return r.spurned("RCPT", &t.s.scrub)
		case r.tooMany() && answered > 0: // the others are those of the next mail, at once (E5, E6)
			// Those whom it refused count: there are servers that count them.
			t.m.bears.Store(&learned{answered, time.Now()})
			return nil
		}
		d := r.delivery("RCPT", &t.s.scrub)
		if r.tooMany() {
			d.Outcome = notify.Deferred
		}
		t.alien = t.alien || r.disowns()
		t.apart = t.apart || !r.system()
		t.settle(i, d)
	}
	return nil
}

// data sends the mail to those that the server has taken.
func (t *transaction) data(ctx context.Context) *holdfast.Failure {
	w, err := t.s.client.Data()
	if err != nil {
		r, ok := replyOf(err)
		if !ok || r.closing() {
			t.sound = false
		}
		switch {
		case !ok:
			return lost(ctx, "DATA", err, &t.s.scrub)
		case r.permanent():
			t.sound = t.sound && t.s.client.Reset() == nil
			return r.failure("DATA", &t.s.scrub, holdfast.Permanent)
		}
		t.sound = t.sound && t.s.client.Reset() == nil
		return r.failure("DATA", &t.s.scrub, holdfast.Transient)
	}
	t.s.wire.piece = t.m.settings.timeouts.data
	defer func() { t.s.wire.piece = 0 }()
	if _, err := w.Write(t.mail); err != nil {
		t.sound = false
		return lost(ctx, "data", err, &t.s.scrub)
	}
	// From the last dot on the mail may be theirs: whoever stops us waits a
	// while for their word, as cutting here makes duplicates (NO-12).
	if !t.stop() {
		t.sound = false
		return lost(ctx, "data", ctx.Err(), &t.s.scrub)
	}
	forgo, answered := t.s.forgo(ctx), notify.Await(ctx)
	answer, err := w.CloseWithResponse()
	answered()
	forgo()
	t.s.mails++
	return t.answered(ctx, answer, err)
}

// forgo has the connection cut a while after ctx ends, when the answer to a mail
// that has left did not come; the function that it returns calls that off.
func (s *session) forgo(ctx context.Context) (off func()) {
	over, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(notify.LastAnswer):
			s.cut()
		case <-over.Done():
		}
	})
	return func() {
		stop()
		cancel()
	}
}

// answered says what became of those whom the mail was for.
func (t *transaction) answered(ctx context.Context, answer *smtp.DataResponse, err error) *holdfast.Failure {
	var d notify.Delivery
	r, ok := replyOf(err)
	if err == nil || ok && r.code/100 == 2 {
		t.m.spurned.Store(0)
	}
	t.served = t.served || err == nil || ok && (r.code/100 == 2 || r.permanent() || r.personal())
	switch {
	case err == nil:
		d = notify.Delivery{Outcome: notify.Accepted, Code: "250", Receipt: t.s.scrub.clean(answer.StatusText)}
	case ok && r.code/100 == 2: // all of these mean that it was taken
		d = notify.Delivery{Outcome: notify.Accepted, Code: r.String(), Receipt: t.s.scrub.clean(r.text)}
	case ok && r.disowns() && t.m.spurned.Add(1) >= mostSpurned:
		t.sound = false
		return r.spurned("after the last dot", &t.s.scrub)
	case ok:
		t.sound = false // there are servers that do not begin anew after they have refused a mail
		d = r.delivery("after the last dot", &t.s.scrub)
	case t.s.wire.broken: // the last dot has not left
		t.sound = false
		return lost(ctx, "data", err, &t.s.scrub)
	default: // E34
		t.sound = false
		d = notify.Delivery{
			Outcome: notify.Deferred, Code: "answer_lost", Maybe: true,
			Text: "after the last dot: the answer did not come; it may have been delivered, and is sent again with the same Message-ID",
		}
	}
	for _, i := range t.taken {
		t.settle(i, d)
	}
	if d.Maybe {
		return t.unanswered(ctx)
	}
	return nil
}

// unanswered is what a lost answer means for those who were not asked yet.
func (t *transaction) unanswered(ctx context.Context) *holdfast.Failure {
	f := &holdfast.Failure{Code: exchange.Lost, Err: errors.New("not asked yet: the answer to the mail before was lost")}
	switch {
	case len(t.open) == 0:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		f.Outcome, f.Code = holdfast.NotStarted, exchange.Canceled
	}
	return f
}
