package transporttest

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-mq/holdfast"
)

// Recorder is a Receiver that keeps the messages that arrive and answers by a function. It may be
// used concurrently.
type Recorder struct {
	// Answer is called for each message. Nil acknowledges every message.
	Answer func(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error)

	mu  sync.Mutex
	got []holdfast.Message
}

// Receive keeps m and answers.
func (r *Recorder) Receive(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	r.mu.Lock()
	r.got = append(r.got, m)
	r.mu.Unlock()
	if r.Answer == nil {
		return holdfast.Receipt{ID: m.ID, State: holdfast.Delivered}, nil
	}
	return r.Answer(ctx, m)
}

// Got returns what has arrived.
func (r *Recorder) Got() []holdfast.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// Inbox is a Receiver with one effect per (source, id), in memory. Effects counts the effects.
type Inbox struct {
	mu      sync.Mutex
	effects map[[2]string]int
}

// Receive takes m, and has its effect once.
func (b *Inbox) Receive(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := [2]string{m.Source, string(m.ID)}
	r := holdfast.Receipt{ID: m.ID, State: holdfast.Delivered, Duplicate: b.effects[key] > 0, Response: m.Payload}
	if !r.Duplicate {
		if b.effects == nil {
			b.effects = map[[2]string]int{}
		}
		b.effects[key]++
	}
	return r, nil
}

// Effects returns how many messages have had their effect.
func (b *Inbox) Effects() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.effects)
}

// inBatches makes a BatchReceiver of a Receiver. Its result stops before the first message for
// which omit returns true.
type inBatches struct {
	holdfast.Receiver
	omit func(m holdfast.Message) bool
}

func (b inBatches) ReceiveBatch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	var results []holdfast.Result
	for _, m := range ms {
		if b.omit != nil && b.omit(m) {
			break
		}
		var r holdfast.Result
		r.Receipt, r.Err = b.Receive(ctx, m)
		results = append(results, r)
	}
	return results
}
