package notify_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

var mailboxFull = notify.Delivery{Outcome: notify.Deferred, Code: "452 4.2.2", Text: "mailbox full"}

// accepted counts the copies of a list's notifications that a recipient has.
func (o *office) accepted(tb testing.TB, prefix, address string, n int) (count int) {
	tb.Helper()
	for i := range n {
		if results(o.one(tb, holdfast.ID(fmt.Sprint(prefix, i))))[address] == notify.Accepted {
			count++
		}
	}
	return count
}

// A mailbox that is full slows down neither the others of its list nor other
// lists of the channel; its notifications pay for it themselves.
func TestARecipientThatIsPutOffSlowsNobodyDown(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.list(t, "ops", mailTo("good@x", "full@x")...)
		o.list(t, "full", mailTo("full@x")...)
		o.list(t, "others", mailTo("other@x")...)
		o.mail.become(by(map[string]notify.Delivery{"full@x": mailboxFull}))
		stop := o.run(t)
		defer stop()
		for i := range 60 {
			o.sent(t, "ops", holdfast.ID(fmt.Sprint("n", i)))
			o.sent(t, "full", holdfast.ID(fmt.Sprint("f", i)))
		}
		time.Sleep(5 * time.Second)
		if n := o.accepted(t, "n", "good@x", 60); n != 60 {
			t.Errorf("within seconds %d of 60 have reached the good mailbox", n)
		}
		time.Sleep(3 * time.Minute) // those who are put off are tried again meanwhile
		for i := range 10 {
			o.sent(t, "others", holdfast.ID(fmt.Sprint("o", i)))
		}
		time.Sleep(5 * time.Second)
		if n := o.accepted(t, "o", "other@x", 10); n != 10 {
			t.Errorf("%d of 10 of another list were delivered within seconds", n)
		}
		if s := o.channels.Status()["mail"]; !s.Up || s.Failures != 0 {
			t.Errorf("the channel is %+v", s)
		}
		if r := o.one(t, "n0"); r.Failures < 3 || r.Status != notify.Retrying {
			t.Errorf("after three minutes it is %s with %d failures", r.Status, r.Failures)
		}
	})
}

// A server that does not answer is the channel's trouble: it is asked less.
func TestASilentServerBacksOff(t *testing.T) {
	t.Parallel()
	silence := fault(&holdfast.Failure{Code: "timeout", Err: errors.New("MAIL: the server did not answer in time")})
	for name, answer := range map[string]func(context.Context, []notify.Recipient) notify.Report{
		"silent": silence,
		"unwell": func(ctx context.Context, to []notify.Recipient) notify.Report {
			r := by(map[string]notify.Delivery{"a@x": mailboxFull})(ctx, to)
			r.Served = false // as after 451 4.3.0 to everybody
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				o := open(t)
				defer o.close(t)
				o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
				o.list(t, "ops", mailTo("a@x")...)
				o.mail.become(answer)
				stop := o.run(t)
				defer stop()
				for i := range 60 {
					o.sent(t, "ops", holdfast.ID(fmt.Sprint("n", i)))
				}
				time.Sleep(10 * time.Minute)
				if s := o.channels.Status()["mail"]; s.Up {
					t.Errorf("the channel is %+v", s)
				}
				if n := len(o.mail.asked()); n < 10 || n > 30 {
					t.Errorf("in ten minutes it was asked %d times", n)
				}
			})
		})
	}
}

// What is away besides the own channel of a copy is nothing to its lane.
func TestAnotherChannelsFaultIsNotTheLanes(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		o := open(t)
		defer o.close(t)
		o.channel(t, notify.Channel{Name: "mail", Kind: "mail"})
		o.channel(t, notify.Channel{Name: "room", Kind: "chat"})
		o.list(t, "ops", mailTo("a@x")...)
		for i := range 30 {
			o.sent(t, "ops", holdfast.ID(fmt.Sprint("n", i)))
		}
		o.list(t, "ops", append(mailTo("a@x"), notify.Recipient{Channel: "room", Address: "r"})...)
		o.chat.become(fault(errAway))
		time.Sleep(2 * time.Second)
		stop := o.run(t)
		defer stop()
		time.Sleep(10 * time.Second)
		if n := o.accepted(t, "n", "a@x", 30); n != 30 {
			t.Errorf("%d of 30 mails were sent within seconds", n)
		}
	})
}
