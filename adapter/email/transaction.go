package email

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email/smtp"
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
	stop  func() bool

	sound bool // the session may be used again
	stale bool // it had been used before, and was turned away before anything was judged
	broke bool // it ended, which says nothing about this mail
}

func (t *transaction) make(ctx context.Context) *holdfast.Failure {
	if size := t.s.limit(); size > 0 && len(t.mail) > size { // E57
		return &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: "too_large", Err: fmt.Errorf("the mail has %d bytes, and the server takes %d", len(t.mail), size),
		}
	}
	e := smtp.Envelope{From: t.m.settings.from.Address, Size: len(t.mail), UTF8: t.international()}
	if len(t.batch) == 0 {
		return nil
	}
	for _, i := range t.batch {
		e.To = append(e.To, t.addr[i])
	}
	answers, err := t.s.client.Offer(&e)
	switch mail := (reply{answers.Mail}); {
	case mail.Code == 0, errors.Is(err, smtp.ErrTurn): // in the latter case nobody knows which answer is whose (F1-62)
		return t.gone(ctx, "MAIL", err)
	case !mail.OK():
		return t.noMail(ctx, mail)
	}
	return t.named(ctx, &answers, err)
}

// limit is the size of mails that the server takes; zero: it does not say.
func (s *session) limit() int {
	size, _ := s.client.Offers("SIZE")
	n, err := strconv.Atoi(size)
	if err != nil {
		return 0
	}
	return n
}

// international says whether an address of the mail needs SMTPUTF8. Where the
// server does not offer that, those that do are refused, and left out (E48).
func (t *transaction) international() bool {
	wide := func(i int) bool { return !isASCII(t.addr[i]) }
	if !slices.ContainsFunc(t.batch, wide) {
		return false
	}
	if _, offered := t.s.client.Offers("SMTPUTF8"); offered {
		return true
	}
	for _, i := range t.batch {
		if wide(i) {
			t.settle(i, notify.Delivery{Outcome: notify.Refused, Code: "553 5.6.7", Text: "the server does not take addresses with other letters than ASCII before the @ (SMTPUTF8)"})
		}
	}
	t.batch = slices.DeleteFunc(t.batch, wide)
	return false
}

// badSequence is the reply to a command that the server does not expect now (RFC
// 5321, section 4.2.3).
const badSequence = 503

// gone ends a connection that broke, or of which nobody knows how it stands,
// before a mail was complete. One that was used before, and had told us nothing
// about this mail, is replaced (E29).
func (t *transaction) gone(ctx context.Context, phase string, err error) *holdfast.Failure {
	t.sound, t.broke = false, true
	if t.stale = t.s.reused && ctx.Err() == nil && (phase == "MAIL" || errors.Is(err, smtp.ErrTurn)); t.stale {
		return nil
	}
	return lost(ctx, phase, err, &t.s.scrub)
}

// noMail says what became of a mail that was not begun. It may be about the
// connection: how many mails went over it, what the server remembers of it. So it is
// not used again; and if it had been used before, another one is asked before
// anything is judged (F1-60). What waiting cures concerns the channel, and is
// charged to no notification.
func (t *transaction) noMail(ctx context.Context, r reply) *holdfast.Failure {
	t.sound = false
	if t.stale = t.s.reused && ctx.Err() == nil; t.stale {
		return nil
	}
	switch {
	case r.Code == badSequence:
		return r.failure("MAIL", &t.s.scrub, holdfast.Transient)
	case r.barred():
		return r.entry("MAIL", &t.s.scrub)
	case !r.Permanent():
		return r.failure("MAIL", &t.s.scrub, holdfast.Unreachable)
	case !r.oversize() && t.m.spurned.Add(1) >= mostSpurned:
		return r.spurned("MAIL", &t.s.scrub)
	}
	return r.failure("MAIL", &t.s.scrub, holdfast.Permanent)
}

// mostSpurned is how many mails in a row may be refused because of their sender,
// which is the same in each: one or two may be a server's confusion or a
// notification's own fault; five park little, and are no accident.
const mostSpurned = 5

// named goes on where the server has heard whom the mail is for; err is how it
// stopped answering.
func (t *transaction) named(ctx context.Context, a *smtp.Answers, err error) *holdfast.Failure {
	ends, fault := t.judge(a.To)
	data := reply{a.Data}
	switch {
	case err != nil:
		t.settleAll(ends)
		phase := "DATA"
		if len(a.To) < len(t.batch) {
			phase = "RCPT"
		}
		return t.gone(ctx, phase, err)
	case fault != nil && a.To[len(a.To)-1].Closing():
		t.sound, t.broke = false, true
		t.settleAll(ends)
		return fault
	case data.Code == 354 && len(t.taken) > 0:
		t.settleAll(ends)
		return t.data(ctx)
	}
	// What the server answers now shows whether its answers were to what it was asked (F1-62).
	if err := t.s.client.Clear(); errors.Is(err, smtp.ErrTurn) {
		return t.gone(ctx, "RSET", err)
	} else if err != nil {
		t.sound, t.broke = false, data.Closing()
	}
	t.settleAll(ends)
	return t.undone(&data, fault)
}

// undone is the end of a mail that was not sent.
func (t *transaction) undone(data *reply, fault *holdfast.Failure) *holdfast.Failure {
	if len(t.taken) > 0 {
		if data.Permanent() {
			return data.failure("DATA", &t.s.scrub, holdfast.Permanent)
		}
		return data.failure("DATA", &t.s.scrub, holdfast.Transient)
	}
	if t.alien {
		t.m.spurned.Add(1)
	}
	t.served = t.served || t.apart
	return fault
}
