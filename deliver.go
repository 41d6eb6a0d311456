package holdfast

import "context"

// Receipt tells what became of a message: accepted by an outbox, or
// acknowledged by a receiver.
type Receipt struct {
	ID        ID
	State     State  // in an outbox: Pending, or the present state of a known id; at a receiver: Delivered
	Duplicate bool   // the id was known, with the same content
	Response  []byte // the receiver's answer; a duplicate gets the stored one
	Answer    []byte // what may be kept of the answer, without secrets; nil: Response may
	Note      string // what people should know about an answer that is not kept as Response; empty: nothing
}

// Deliverer is the way out. Deliver makes one attempt and blocks until its
// outcome is known or ctx ends. A nil error means that the other side has
// taken the message durably. A Failure classifies the error; any other error is
// Transient. Deliver is called concurrently. A panic in it is a transient failure.
type Deliverer interface {
	Deliver(ctx context.Context, m Message) (Receipt, error)
}

// DelivererFunc makes a function a Deliverer.
type DelivererFunc func(ctx context.Context, m Message) (Receipt, error)

// Deliver calls f.
func (f DelivererFunc) Deliver(ctx context.Context, m Message) (Receipt, error) { return f(ctx, m) }

// Result is what became of one message of a batch.
type Result struct {
	Receipt Receipt
	Err     error
}

// BatchDeliverer is a Deliverer that can carry several messages at once.
// DeliverBatch returns one result per message, in order.
type BatchDeliverer interface {
	Deliverer
	// BatchSize is the most messages that the other side takes at once now; 1
	// or less means that messages go one by one. It may change between calls.
	BatchSize() int
	DeliverBatch(ctx context.Context, ms []Message) []Result
}

// Receiver is the way in. Receive returns after the message and its effect
// are durable; it is called concurrently and repeatedly with the same
// message, and has one effect per (Source, ID). A Failure tells the sender
// whether to try again; ReceiveFailure says what other errors mean.
type Receiver interface {
	Receive(ctx context.Context, m Message) (Receipt, error)
}

// BatchReceiver is a Receiver that takes several messages at once. Each message has
// its own result, in order. A message that fails does not stop the others. After ctx
// has ended, ReceiveBatch begins nothing more and answers at once. What it has not
// begun is NotStarted. What it has begun goes on, and is reported as a transient
// failure that may have been delivered.
type BatchReceiver interface {
	Receiver
	ReceiveBatch(ctx context.Context, ms []Message) []Result
}

// Enqueuer is an outbox (own commit, grouped with others') or a transaction (the
// caller's commit). Either all messages are accepted or none. An outbox returns after
// they are durable, a transaction after they are written in it. An id that is known
// with the same content is reported as Duplicate with its present state; with other
// content the error is ErrConflict. The slices in ms must not be changed afterwards.
type Enqueuer interface {
	Enqueue(ctx context.Context, ms ...Message) ([]Receipt, error)
}
