package email

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email/smtp"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/notify"
)

// data sends the mail to the recipients that the server has accepted.
func (t *transaction) data(ctx context.Context) *holdfast.Failure {
	t.identify(t.taken)
	off := func() {}
	// After the last dot the server may have accepted the mail. Even on a stop we wait a while for
	// the answer: cutting the connection here makes duplicates (NO-12).
	answer, err := t.s.client.Data(t.mail, func() bool {
		if !t.stop() {
			return false
		}
		forgo, answered := t.s.forgo(ctx), notify.Await(ctx)
		off = func() {
			answered()
			forgo()
		}
		return true
	})
	off()
	if errors.Is(err, smtp.ErrIncomplete) {
		return t.gone(ctx, "data", err)
	}
	t.s.mails++
	return t.answered(ctx, reply{answer}, err)
}

// forgo cuts the connection a while after ctx ends, if the answer to a sent mail has not come. The
// returned function cancels that.
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

// answered settles the recipients of the mail by the server's answer.
func (t *transaction) answered(ctx context.Context, r reply, err error) *holdfast.Failure {
	var d notify.Delivery
	if r.OK() {
		t.m.spurned.Store(0)
	}
	t.served = t.served || r.OK() || r.Permanent() || r.personal()
	t.sound = r.OK() // some servers do not start anew after they have refused a mail
	switch {
	case err != nil: // E34
		d = notify.Delivery{
			Outcome: notify.Deferred, Code: "answer_lost", Maybe: true,
			Text: "after the last dot: the answer did not come; it may have been delivered, and is sent again with the same Message-ID",
		}
	case r.OK(): // any 2xx means that the mail was accepted
		d = notify.Delivery{Outcome: notify.Accepted, Code: r.String(), Receipt: t.s.scrub.clean(r.Text)}
	case r.disowns() && t.m.spurned.Add(1) >= mostSpurned:
		return r.spurned("after the last dot", &t.s.scrub)
	default:
		d = r.delivery("after the last dot", &t.s.scrub)
	}
	for _, i := range t.taken {
		t.settle(i, d)
	}
	if d.Maybe {
		return t.unanswered(ctx)
	}
	return nil
}

// unanswered returns what a lost answer means for recipients who were not named yet.
func (t *transaction) unanswered(ctx context.Context) *holdfast.Failure {
	f := &holdfast.Failure{Code: exchange.Lost, Err: errors.New("not asked yet: the answer to the previous mail was lost")}
	switch {
	case len(t.open) == 0:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		f.Outcome, f.Code = holdfast.NotStarted, exchange.Canceled
	}
	return f
}
