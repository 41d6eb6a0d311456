package transport

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

// Local joins the two ends in one process by a call, without serialization (OI-11). A receiver's
// errors mean the same as over the network. A panic is contained. A call ends when the receiver
// returns.
type Local struct {
	Receiver holdfast.Receiver
	Source   string // of messages without a Source
}

var _ holdfast.BatchDeliverer = (*Local)(nil)

// BatchSize returns the server's default, or 1 if the receiver takes single messages.
func (l *Local) BatchSize() int {
	if _, ok := l.Receiver.(holdfast.BatchReceiver); ok {
		return defaultBatchRows
	}
	return 1
}

// Deliver makes one attempt.
func (l *Local) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	id := m.ID
	if err := ctx.Err(); err != nil {
		return holdfast.Receipt{ID: id}, notStarted(id, err)
	}
	if err := l.prepare(&m); err != nil {
		return holdfast.Receipt{ID: id}, err
	}
	receipt, err := l.call(ctx, m)
	r := l.result(ctx, id, holdfast.Result{Receipt: receipt, Err: err})
	return r.Receipt, r.Err
}

// prepare makes m what it would be after a trip over the network.
func (l *Local) prepare(m *holdfast.Message) error {
	if m.Source == "" {
		m.Source = l.Source
	}
	payload, err := wire.TrimPayload(m.Payload)
	if err != nil {
		return failed(m.ID, err).Err
	}
	m.Payload, m.Destination = payload, ""
	return nil
}

func (l *Local) call(ctx context.Context, m holdfast.Message) (receipt holdfast.Receipt, err error) {
	defer contain(&err)
	return l.Receiver.Receive(ctx, m)
}

func contain(err *error) {
	if p := recover(); p != nil {
		*err = &holdfast.Failure{Code: CodePanic, Err: fmt.Errorf("receiver panicked: %v", p)}
	}
}

func (l *Local) result(ctx context.Context, id holdfast.ID, r holdfast.Result) holdfast.Result {
	if r.Err != nil {
		f := wire.Classify(r.Err)
		// When its time runs out, a receiver may have done its work or not.
		f.MaybeDelivered = f.MaybeDelivered || ctx.Err() != nil && f.Outcome == holdfast.Transient
		return failed(id, f)
	}
	r.Receipt.ID, r.Receipt.State = id, holdfast.Delivered
	return r
}

// DeliverBatch makes one attempt for each message.
func (l *Local) DeliverBatch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	results := make([]holdfast.Result, len(ms))
	to, ok := l.Receiver.(holdfast.BatchReceiver)
	if !ok {
		for i := range ms {
			results[i].Receipt, results[i].Err = l.Deliver(ctx, ms[i])
		}
		return results
	}
	var own []holdfast.Message
	var index []int
	for i, m := range ms {
		if err := ctx.Err(); err != nil {
			results[i].Err = notStarted(m.ID, err)
		} else if err := l.prepare(&m); err != nil {
			results[i].Err = err
		} else {
			own, index = append(own, m), append(index, i)
		}
	}
	got, err := l.callBatch(ctx, to, own)
	for n, i := range index {
		switch {
		case err != nil:
			results[i] = l.result(ctx, ms[i].ID, holdfast.Result{Err: err})
		case n >= len(got):
			results[i] = failed(ms[i].ID, &holdfast.Failure{
				Code: CodeNoResult, MaybeDelivered: true, Err: errors.New("the receiver gave no result"),
			})
		default:
			results[i] = l.result(ctx, ms[i].ID, got[n])
		}
	}
	return results
}

func (l *Local) callBatch(ctx context.Context, to holdfast.BatchReceiver, ms []holdfast.Message) (results []holdfast.Result, err error) {
	if len(ms) == 0 {
		return nil, nil
	}
	defer contain(&err)
	return to.ReceiveBatch(ctx, ms), nil
}
