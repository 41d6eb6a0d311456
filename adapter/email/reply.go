package email

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email/smtp"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/notify"
)

// reply is the server's answer, with its meaning here.
type reply struct{ smtp.Reply }

// barred reports that the cause is not the sender or recipient, but that we come without
// credentials or in clear.
func (r reply) barred() bool { return r.Code == 530 || r.Code == 538 }

// disowns reports that a refusal of a recipient or of a mail is about its sender. Servers that
// check the sender late refuse there (5.7.60 of Exchange, "Sender address rejected" of Postfix).
func (r reply) disowns() bool {
	switch r.Enhanced {
	case "5.1.7", "5.1.8", "5.7.27", "5.7.60":
		return r.Permanent()
	}
	text := strings.ToLower(r.Text)
	return r.Permanent() && (strings.Contains(text, "sender address rejected") || strings.Contains(text, "send as this sender"))
}

// oversize reports that the mail is too large, which is the mail's own fault.
func (r reply) oversize() bool { return r.Code == 552 || r.Enhanced == "5.3.4" }

// subject returns the second figure of the enhanced code, which says what a reply is about (RFC
// 3463). Zero: there is no enhanced code.
func (r reply) subject() byte {
	if r.Enhanced == "" {
		return 0
	}
	return r.Enhanced[2]
}

// system reports a temporary problem of the server or its network, not of the recipient: 4.3.0
// while it has no room, 4.4.x.
func (r reply) system() bool { return !r.Permanent() && (r.subject() == '3' || r.subject() == '4') }

// personal reports that a whole mail was put off because of its recipients, or by a rule such as
// greylisting: 4.1.x, 4.2.2, 4.7.1.
func (r reply) personal() bool {
	return r.subject() == '1' || r.subject() == '2' || r.subject() == '7' && !r.Closing()
}

// wait returns the wait that the server asks for. A permanent refusal asks for none.
func (r reply) wait() time.Duration {
	if r.Permanent() {
		return 0
	}
	return asked(r.Text)
}

// said returns the reply for people.
func (r reply) said(phase string, s *scrubber) string {
	text := phase + ": " + r.Text
	if r.Enhanced != "" && int(r.Enhanced[0]-'0') != r.Code/100 {
		text += fmt.Sprintf(" (%d counts, not %s)", r.Code, r.Enhanced) // code and enhanced code contradict each other
	}
	return s.clean(text)
}

// delivery returns what a reply means for one recipient.
func (r reply) delivery(phase string, s *scrubber) notify.Delivery {
	d := notify.Delivery{Outcome: notify.Deferred, Code: r.String(), Text: r.said(phase, s), RetryAfter: r.wait()}
	if r.Permanent() {
		d.Outcome = notify.Refused
	}
	return d
}

// failure returns what a reply means if it concerns more than one recipient.
func (r reply) failure(phase string, s *scrubber, o holdfast.Outcome) *holdfast.Failure {
	return &holdfast.Failure{
		Outcome: o, Code: r.String(), RetryAfter: r.wait(), Err: errors.New(clip(r.String()+": "+r.said(phase, s), mostText)),
	}
}

// entry classifies a reply that keeps the server from accepting mail. It separates what time cures
// from what somebody must change.
func (r reply) entry(phase string, s *scrubber) *holdfast.Failure {
	if !r.Permanent() {
		return r.failure(phase, s, holdfast.Unreachable)
	}
	return r.failure(phase, s, holdfast.LaneFault)
}

// spurned returns the fault of a channel whose sender is refused.
func (r reply) spurned(phase string, s *scrubber) *holdfast.Failure {
	f := r.failure(phase, s, holdfast.LaneFault)
	f.Err = fmt.Errorf("the server refuses the sender of each mail; see that the account may send as the channel's from address, then resume: %w", f.Err)
	return f
}

// unconnected classifies an error that came before the server was asked to accept a mail.
func unconnected(ctx context.Context, phase string, err error, s *scrubber) *holdfast.Failure {
	if garbage, ok := errors.AsType[*smtp.GarbageError](err); ok { // E38
		return hold("not_smtp", fmt.Sprintf("%s: this is not an SMTP server: it says %s", phase, clip(s.Clean(garbage.Line), 200)))
	}
	if errors.Is(err, smtp.ErrTurn) || errors.Is(err, smtp.ErrEndless) {
		return hold("not_smtp", fmt.Sprintf("%s: this is not an SMTP server: %s", phase, s.clean(err.Error())))
	}
	f := exchange.Unconnected(ctx, err)
	if f.Code == exchange.Connect && phase != connecting {
		f.Code = exchange.Lost
	}
	f.Err = errors.New(s.clean(fmt.Sprintf("%s: %v", phase, err))) // names in a certificate come from the other side
	return f
}

// lost classifies an error while a mail is sent, before its last dot: nothing was delivered.
func lost(ctx context.Context, phase string, err error, s *scrubber) *holdfast.Failure {
	f := &holdfast.Failure{
		Code: exchange.Lost, Err: errors.New(s.clean(fmt.Sprintf("%s: the connection broke before the mail was complete: %v", phase, err))),
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		f.Outcome, f.Code, f.Err = holdfast.NotStarted, exchange.Canceled, fmt.Errorf("%s: stopped before the mail was complete", phase)
	case ctx.Err() != nil || ok && timeout.Timeout():
		f.Code, f.Err = exchange.Timeout, fmt.Errorf("%s: the server did not answer in time", phase)
	}
	return f
}

// hold returns a fault that somebody must repair.
func hold(code, text string) *holdfast.Failure {
	return &holdfast.Failure{Outcome: holdfast.LaneFault, Code: code, Err: errors.New(text)}
}
