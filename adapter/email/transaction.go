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

// transaction is the sending of one mail.
type transaction struct {
	*run
	s     *session
	batch []int
	taken []int // recipients that the server has accepted, if it accepts the mail
	alien bool  // a recipient was refused because of the sender
	apart bool  // the server treated recipients differently, so it works
	stop  func() bool

	sound bool // the session may be used again
	stale bool // the session was not new, and was turned away before the server judged anything
	broke bool // the connection ended; that says nothing about this mail
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
	case mail.Code == 0, errors.Is(err, smtp.ErrTurn): // on ErrTurn it is unknown which answer belongs to which command (F1-62)
		return t.gone(ctx, "MAIL", err)
	case !mail.OK():
		return t.noMail(ctx, mail)
	}
	return t.named(ctx, &answers, err)
}

// limit returns the largest mail that the server accepts, in bytes; zero: unknown.
func (s *session) limit() int {
	size, _ := s.client.Offers("SIZE")
	n, err := strconv.Atoi(size)
	if err != nil {
		return 0
	}
	return n
}

// international reports whether an address of the mail needs SMTPUTF8. If the server does not offer
// it, recipients with such addresses are refused and left out (E48).
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

// badSequence is the reply to a command that the server does not expect now (RFC 5321, section
// 4.2.3).
const badSequence = 503

// gone ends a connection that broke, or whose state is unknown, before a mail was complete. If it
// was not new and had said nothing about this mail, it is replaced (E29).
func (t *transaction) gone(ctx context.Context, phase string, err error) *holdfast.Failure {
	t.sound, t.broke = false, true
	if t.stale = t.s.reused && ctx.Err() == nil && (phase == "MAIL" || errors.Is(err, smtp.ErrTurn)); t.stale {
		return nil
	}
	return lost(ctx, phase, err, &t.s.scrub)
}

// noMail returns what became of a mail that was not begun. The cause may be the connection: how
// many mails it has carried, or what the server remembers about it. So the connection is not used
// again, and if it was not new, another one is tried before anything is judged (F1-60). A failure
// that time cures concerns the channel, and is charged to no notification.
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

// mostSpurned is how many consecutive mails may be refused because of their sender, which is the
// same in each. One or two may be a temporary fault of the server or a fault of the notification.
// Five are no accident, and park few notifications.
const mostSpurned = 5

// named continues after the envelope was sent. err says how the server stopped answering.
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
	// The next reply shows whether the answers belonged to their commands (F1-62).
	if err := t.s.client.Clear(); errors.Is(err, smtp.ErrTurn) {
		return t.gone(ctx, "RSET", err)
	} else if err != nil {
		t.sound, t.broke = false, data.Closing()
	}
	t.settleAll(ends)
	return t.undone(&data, fault)
}

// undone returns the outcome of a mail that was not sent.
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
