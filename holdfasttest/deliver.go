package holdfasttest

import (
	"bytes"
	"context"
	"errors"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// Deliver receives a message: the Receive of an Inbox, the Deliver of a Deliverer, or a function of
// the test.
type Deliver = func(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error)

// DeliverAll makes one attempt for each message that is due, and for those that the attempts
// enqueue, one after the other. It records the outcomes as a dispatcher does with the default
// policy: a message that fails waits for its retry, or parks if the failure is Permanent. It
// returns one result for each attempt, in order. To test retries and callbacks, run a Dispatcher.
func (k *Kit) DeliverAll(to Deliver) []holdfast.Result {
	k.tb.Helper()
	ctx := context.Background()
	var results []holdfast.Result
	tried := map[holdfast.ID]bool{}
	var again []holdfast.Settlement // due again already: not in this call
	for {
		claims := k.claim(ctx)
		if len(claims) == 0 {
			break
		}
		for _, c := range claims {
			s := holdfast.Settlement{Seq: c.Seq, Token: c.Token, Outcome: holdfast.NotStarted, State: holdfast.Pending}
			if tried[c.Message.ID] {
				again = append(again, s)
				continue
			}
			tried[c.Message.ID] = true
			receipt, err := to(ctx, c.Message)
			results = append(results, holdfast.Result{Receipt: receipt, Err: err})
			k.settle(ctx, outcome(&c, err))
		}
	}
	k.settle(ctx, again...)
	return results
}

// claim claims what is due, for every destination that has waiting messages.
func (k *Kit) claim(ctx context.Context) []holdfast.Claim {
	k.tb.Helper()
	// An attached store sees the commits of others when it begins a transaction.
	if err := k.DB.Do(ctx, func(context.Context, *sqlite.Tx) error { return nil }); err != nil {
		k.tb.Fatal(err)
	}
	slots := map[string]int{}
	for name := range k.DB.Counts().Lanes {
		if name != holdfast.EndedDestination {
			slots[name] = 100
		}
	}
	if len(slots) == 0 {
		return nil
	}
	batch, err := k.DB.Claim(ctx, slots)
	if err != nil {
		k.tb.Fatal(err)
	}
	return batch.Claims
}

func (k *Kit) settle(ctx context.Context, s ...holdfast.Settlement) {
	k.tb.Helper()
	if len(s) == 0 {
		return
	}
	if _, err := k.DB.Settle(ctx, s...); err != nil {
		k.tb.Fatal(err)
	}
}

// outcome returns what a dispatcher would record.
func outcome(c *holdfast.Claim, err error) holdfast.Settlement {
	s := holdfast.Settlement{Seq: c.Seq, Token: c.Token, Outcome: holdfast.Succeeded, State: holdfast.Delivered}
	if err == nil {
		return s
	}
	f := holdfast.AsFailure(err)
	policy := holdfast.DefaultRetry()
	if c.Message.Retry != nil {
		policy = c.Message.Retry.Over(policy)
	}
	s.Outcome, s.Code, s.Maybe, s.Error, s.State = f.Outcome, f.Code, f.MaybeDelivered, f.Error(), holdfast.Pending
	s.Charged = f.Outcome == holdfast.Permanent || f.Outcome == holdfast.Transient
	switch {
	case f.Outcome == holdfast.Permanent:
		s.State, s.Reason = holdfast.Parked, f.Reason
		if s.Reason == "" {
			s.Reason = holdfast.ReasonPermanent
		}
	case s.Charged && policy.Spent(c.Failures+1):
		s.State, s.Reason = holdfast.Parked, holdfast.ReasonExhausted
	default:
		s.RetryIn = policy.Next(c.Tries, f.RetryAfter)
	}
	return s
}

// ReceiveTwice passes a message to a receiver twice, like a sender that has lost the answer. It
// fails the test unless the first is taken as new, and the second is recognized as a duplicate with
// the same response. It returns the first receipt.
func (k *Kit) ReceiveTwice(m holdfast.Message, to Deliver) holdfast.Receipt {
	k.tb.Helper()
	var receipts [2]holdfast.Receipt
	for i, attempt := range []string{"first", "second"} {
		var err error
		if receipts[i], err = to(context.Background(), m); err != nil {
			k.tb.Fatalf("message %s at %s, received for the %s time: %v", m.ID, m.Endpoint, attempt, err)
		}
	}
	switch first, second := receipts[0], receipts[1]; {
	case first.Duplicate:
		k.tb.Fatalf("message %s was known before; give each message of a test an id of its own", m.ID)
	case !second.Duplicate:
		k.tb.Fatalf("message %s was taken as new twice: its effect happened twice", m.ID)
	case !bytes.Equal(first.Response, second.Response):
		k.tb.Fatalf("message %s was answered with %q, its repeat with %q", m.ID, first.Response, second.Response)
	}
	return receipts[0]
}

// ProcessTwice is ReceiveTwice for a handler. It runs the handler in the kit's own inbox, and fails
// the test unless the handler ran once.
func (k *Kit) ProcessTwice(m holdfast.Message, h holdfast.Handler[*sqlite.Tx]) holdfast.Receipt {
	k.tb.Helper()
	ran := 0
	counted := func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
		ran++
		return h(ctx, tx, m)
	}
	inbox := k.DB.Inbox()
	receipt := k.ReceiveTwice(m, func(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		return inbox.Process(ctx, m, counted)
	})
	if ran != 1 {
		k.tb.Fatalf("the handler of message %s ran %d times, want once", m.ID, ran)
	}
	return receipt
}

// ProcessInterrupted runs a handler and rolls its transaction back, as if the process had died
// before the commit. An effect that remains afterwards was made outside the transaction; it will
// happen again when the message comes again.
func (k *Kit) ProcessInterrupted(m holdfast.Message, h holdfast.Handler[*sqlite.Tx]) {
	k.tb.Helper()
	var failed error
	_, err := k.DB.Inbox().Process(context.Background(), m, func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
		_, failed = h(ctx, tx, m)
		return nil, errInterrupted
	})
	switch {
	case failed != nil:
		k.tb.Fatalf("the handler of message %s failed: %v", m.ID, failed)
	case err == nil:
		k.tb.Fatalf("message %s was known before; give each message of a test an id of its own", m.ID)
	}
}

var errInterrupted = errors.New("interrupted by the test")
