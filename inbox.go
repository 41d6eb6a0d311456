package holdfast

import (
	"context"
	"sync"
	"time"
)

// Handler processes an incoming message inside the inbox transaction; T is *sqlite.Tx or
// *postgres.Tx. One commit holds what it does through tx, the id and the response. The
// response may be nil; later duplicates get the same. An error undoes everything, and the
// sender tries again unless it is a Permanent Failure. While a handler runs, the store's
// other writers wait (SQLite), or a connection and its locks are taken (PostgreSQL). To
// wait for another machine, enqueue a message with tx instead.
type Handler[T any] func(ctx context.Context, tx T, m Message) (response []byte, err error)

// InboxStore is what a transactional inbox needs of a store.
type InboxStore[T any] interface {
	// Process inserts (Source, ID) first and lets the unique key decide. A duplicate gets
	// the stored response, other content is ErrConflict, and an unknown id from before the
	// horizon is ErrTooOld. Otherwise h runs once.
	Process(ctx context.Context, m Message, retention time.Duration, h Handler[T]) (Receipt, error)
	// ProcessBatch does the same for several messages in one transaction, one
	// result each. An error of h undoes its own message only.
	ProcessBatch(ctx context.Context, ms []Message, retention time.Duration, h Handler[T]) []Result
}

// DefaultInboxRetention is the least time that ids are remembered (OI-10).
const DefaultInboxRetention = 7 * 24 * time.Hour

// Inbox makes handlers idempotent: one effect per (Source, ID) for as long as
// ids are remembered.
//
// Process runs a handler for one message. With registered handlers (Register, Handle), an
// Inbox is a Receiver for a transport. It is safe for concurrent use. A store makes one:
// sqlite.DB.Inbox, postgres.DB.Inbox.
type Inbox[T any] struct {
	Store     InboxStore[T]
	Retention time.Duration // zero: DefaultInboxRetention
	Together  bool          // ReceiveBatch runs the handlers of a batch in one transaction

	mu       sync.Mutex
	handlers map[string]Handler[T]
}

// Process runs h for a new message, in a transaction of its own, and returns after the
// commit. A repeat gets the first response, as a Duplicate. ErrConflict and ErrTooOld
// refuse a message. ErrInvalid says what it lacks; it needs at least an id and a source.
// An error of h is wrapped.
func (in *Inbox[T]) Process(ctx context.Context, m Message, h Handler[T]) (Receipt, error) {
	return in.Store.Process(ctx, m, in.retention(), markErrors(h))
}

func (in *Inbox[T]) retention() time.Duration {
	if in.Retention == 0 {
		return DefaultInboxRetention
	}
	return in.Retention
}

// handlerError marks an error as a handler's: an ErrConflict in it is about the handler's
// own work, not about the message.
type handlerError struct{ err error }

func (e *handlerError) Error() string { return e.err.Error() }
func (e *handlerError) Unwrap() error { return e.err }

// InboxLog is what a node's own endpoints need of a store: ids and responses of forwarded
// messages, and messages that wait to be fetched. Methods are atomic and group their
// commits with others'.
type InboxLog interface {
	// Known looks messages up. known[i] tells whether ms[i] was processed before; then its
	// receipt holds the stored response. With ErrConflict and ErrTooOld as the result's
	// error, known is true. ErrDiskFull says that a message could not be remembered; known
	// is true then, too.
	Known(ctx context.Context, retention time.Duration, ms ...Message) (known []bool, results []Result, err error)
	// Record remembers messages that were processed, with their responses.
	Record(ctx context.Context, retention time.Duration, done ...Processed) ([]Result, error)
	// Keep stores messages for somebody to fetch. A duplicate, a conflict or an id that is
	// too old is a result, not an error.
	Keep(ctx context.Context, retention time.Duration, ms ...Message) ([]Result, error)
	// Kept lists messages that wait to be fetched, oldest first.
	Kept(ctx context.Context, q KeptQuery) (KeptPage, error)
	// Sources names the senders of the messages with this id that wait to be fetched. If
	// none waits any more, it names the senders of those that did.
	Sources(ctx context.Context, id ID) ([]string, error)
	// Done ends a kept message with the response that later duplicates get. If the message
	// is done already, the same response is no error and another one is ErrState. A message
	// that is not kept is ErrNotFound.
	Done(ctx context.Context, source string, id ID, response []byte) error
	// SweepInbox deletes a page of ids whose time is over.
	SweepInbox(ctx context.Context, retention time.Duration) (purged int, more bool, err error)
}

// Processed is a message and what its endpoint answered.
type Processed struct {
	Message  Message
	Response []byte
}

// KeptQuery narrows Kept. Zero fields do not narrow.
type KeptQuery struct {
	Endpoint string
	Limit    int   // 1 to 500; zero: 50
	After    int64 // KeptPage.Next of the previous page
}

// KeptPage is one page of messages that wait to be fetched.
type KeptPage struct {
	Messages []KeptMessage
	Next     int64 // zero: no more
}

// KeptMessage is a message that waits to be fetched.
type KeptMessage struct {
	Message  Message
	Received time.Time

	// Damaged says that the stored bytes differ from what was accepted. The message is
	// listed without payload and headers, so that nobody takes them for what was sent. It
	// can be marked done.
	Damaged bool
}
