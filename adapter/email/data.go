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

// data sends the mail to those that the server has taken.
func (t *transaction) data(ctx context.Context) *holdfast.Failure {
	t.identify(t.taken)
	off := func() {}
	// From the last dot on the mail may be theirs: whoever stops us waits a
	// while for their word, as cutting here makes duplicates (NO-12).
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
func (t *transaction) answered(ctx context.Context, r reply, err error) *holdfast.Failure {
	var d notify.Delivery
	if r.OK() {
		t.m.spurned.Store(0)
	}
	t.served = t.served || r.OK() || r.Permanent() || r.personal()
	t.sound = r.OK() // there are servers that do not begin anew after they have refused a mail
	switch {
	case err != nil: // E34
		d = notify.Delivery{
			Outcome: notify.Deferred, Code: "answer_lost", Maybe: true,
			Text: "after the last dot: the answer did not come; it may have been delivered, and is sent again with the same Message-ID",
		}
	case r.OK(): // each of these means that it was taken
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
