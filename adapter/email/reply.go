package email

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"regexp"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/notify"
)

// reply is what the server said.
type reply struct {
	code     int
	enhanced string // as 5.1.1; empty: none
	text     string // as it came
}

func parseReply(code int, text string) reply {
	r := reply{code: code, text: text}
	if found := regexp.MustCompile(`^([245]\.\d{1,3}\.\d{1,3})(?:[ \n]|$)`).FindStringSubmatch(text); found != nil {
		r.enhanced = found[1]
		r.text = strings.TrimSpace(strings.ReplaceAll("\n"+text, "\n"+r.enhanced, "\n"))
	}
	return r
}

// replyOf is the reply that an error of the client stands for.
func replyOf(err error) (reply, bool) {
	e, ok := errors.AsType[*smtp.SMTPError](err)
	if !ok {
		return reply{}, false
	}
	r := reply{code: e.Code, text: e.Message}
	if c := e.EnhancedCode; c[0] > 0 {
		r.enhanced = fmt.Sprintf("%d.%d.%d", c[0], c[1], c[2])
	}
	return r, true
}

func (r reply) String() string { return strings.TrimSpace(fmt.Sprintf("%d %s", r.code, r.enhanced)) }

func (r reply) permanent() bool { return r.code/100 == 5 }

// barred says that it is not this sender or recipient that is wrong, but that
// we come without credentials or in clear.
func (r reply) barred() bool { return r.code == 530 || r.code == 538 }

// closing says that the server ends the connection.
func (r reply) closing() bool { return r.code == 421 }

// tooMany says that the server takes fewer recipients in one mail: 452, and
// 552 of servers that mean it (RFC 5321, 4.5.3.1.10).
func (r reply) tooMany() bool {
	text := strings.ToLower(r.text)
	switch r.code {
	case 452:
		return r.enhanced == "4.5.3" || strings.Contains(text, "too many")
	case 552:
		return r.enhanced == "5.5.3" || strings.Contains(text, "recipient") && r.enhanced == ""
	}
	return false
}

// disowns says that a refusal, of a recipient or of a whole mail, is about who
// sends: servers that check the sender late do it there (5.7.60 of Exchange,
// "Sender address rejected" of Postfix).
func (r reply) disowns() bool {
	switch r.enhanced {
	case "5.1.7", "5.1.8", "5.7.27", "5.7.60":
		return r.permanent()
	}
	text := strings.ToLower(r.text)
	return r.permanent() && (strings.Contains(text, "sender address rejected") || strings.Contains(text, "send as this sender"))
}

// oversize says that a mail is too large, which is its own fault.
func (r reply) oversize() bool { return r.code == 552 || r.enhanced == "5.3.4" }

// subject is the second figure of the enhanced code, which says what a reply is
// about (RFC 3463); zero: it does not say.
func (r reply) subject() byte {
	if r.enhanced == "" {
		return 0
	}
	return r.enhanced[2]
}

// system says that the server itself is unwell, or its network, and not the
// recipient whom it puts off: 4.3.0 while it has no room, 4.4.x.
func (r reply) system() bool { return !r.permanent() && (r.subject() == '3' || r.subject() == '4') }

// personal says that a whole mail was put off because of whom it is for, or by
// a rule about it, as greylisting is: 4.1.x, 4.2.2, 4.7.1.
func (r reply) personal() bool {
	return r.subject() == '1' || r.subject() == '2' || r.subject() == '7' && !r.closing()
}

// wait is what the server asks for; a refusal for good asks for nothing.
func (r reply) wait() time.Duration {
	if r.permanent() {
		return 0
	}
	return asked(r.text)
}

// said is the reply for people.
func (r reply) said(phase string, s *scrubber) string {
	text := phase + ": " + r.text
	if r.enhanced != "" && int(r.enhanced[0]-'0') != r.code/100 {
		text += fmt.Sprintf(" (%d counts, not %s)", r.code, r.enhanced) // they contradict each other
	}
	return s.clean(text)
}

// delivery is what a reply means for one recipient.
func (r reply) delivery(phase string, s *scrubber) notify.Delivery {
	d := notify.Delivery{Outcome: notify.Deferred, Code: r.String(), Text: r.said(phase, s), RetryAfter: r.wait()}
	if r.permanent() {
		d.Outcome = notify.Refused
	}
	return d
}

// failure is what a reply means where it concerns more than one recipient.
func (r reply) failure(phase string, s *scrubber, o holdfast.Outcome) *holdfast.Failure {
	return &holdfast.Failure{
		Outcome: o, Code: r.String(), RetryAfter: r.wait(), Err: errors.New(clip(r.String()+": "+r.said(phase, s), mostText)),
	}
}

// entry classifies a reply that stands between us and the server's taking
// mail: what waiting cures is apart from what somebody must change.
func (r reply) entry(phase string, s *scrubber) *holdfast.Failure {
	if !r.permanent() {
		return r.failure(phase, s, holdfast.Unreachable)
	}
	return r.failure(phase, s, holdfast.LaneFault)
}

// spurned is what a channel's sender must change.
func (r reply) spurned(phase string, s *scrubber) *holdfast.Failure {
	f := r.failure(phase, s, holdfast.LaneFault)
	f.Err = fmt.Errorf("the server refuses the sender of each mail; see that the account may send as the channel's from address, then resume: %w", f.Err)
	return f
}

// unconnected classifies an error before the server was asked to take a mail.
func unconnected(ctx context.Context, phase string, err error, s *scrubber) *holdfast.Failure {
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok { // E38
		return hold("not_smtp", fmt.Sprintf("%s: this is not an SMTP server: it says %s", phase, clip(s.Clean(err.Error()), 200)))
	}
	if errors.Is(err, errEarly) || errors.Is(err, errAnswer) {
		return hold("not_smtp", fmt.Sprintf("%s: this is not an SMTP server: %s", phase, s.clean(err.Error())))
	}
	f := exchange.Unconnected(ctx, err)
	if f.Code == exchange.Connect && phase != connecting {
		f.Code = exchange.Lost
	}
	f.Err = errors.New(s.clean(fmt.Sprintf("%s: %v", phase, err))) // names in a certificate are the other side's
	return f
}

// lost classifies an error while the server takes a mail, of which it has not
// got the last dot: nothing was delivered.
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

// hold is what somebody must change.
func hold(code, text string) *holdfast.Failure {
	return &holdfast.Failure{Outcome: holdfast.LaneFault, Code: code, Err: errors.New(text)}
}
