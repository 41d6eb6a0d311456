package holdfast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Endpoint says what a node does with messages that arrive for it. Exactly one of
// Forward and Keep is set.
type Endpoint struct {
	Forward Deliverer     // called once at a time for each id; its answer becomes the stored response
	Keep    bool          // the message is stored until somebody fetches it and marks it done
	Timeout time.Duration // of a forward; zero: 30 s
}

// Endpoints is the Receiver of a node. A forward happens at least once: the call is made
// outside of any transaction, then id and response are written. A crash in between
// repeats the call with the same Idempotency-Key. A kept message has exactly one row per
// (Source, ID). A forward that has begun goes on when its sender stops waiting, so that
// the next attempt finds it done; Wait waits for such forwards. An endpoint that does not
// answer costs the others nothing.
type Endpoints struct {
	Log       InboxLog
	Map       map[string]Endpoint
	Other     *Endpoint     // for endpoints that Map does not name; nil: they are refused
	Retention time.Duration // zero: DefaultInboxRetention
	Observer  Observer
	Logger    *slog.Logger

	calls   sync.WaitGroup
	mu      sync.Mutex
	flights map[flightKey]chan struct{}
	gates   map[string]*gate
}

var _ BatchReceiver = (*Endpoints)(nil)

type flightKey struct {
	source string
	id     ID
}

// Receive takes one message.
func (e *Endpoints) Receive(ctx context.Context, m Message) (Receipt, error) {
	r := e.ReceiveBatch(ctx, []Message{m})[0]
	return r.Receipt, r.Err
}

// ReceiveBatch takes several messages. It keeps those to be kept in one commit, and
// forwards the others side by side.
func (e *Endpoints) ReceiveBatch(ctx context.Context, ms []Message) []Result {
	began := time.Now()
	results := make([]Result, len(ms))
	var keep []Message
	var keepAt []int
	answers := make(chan answer, len(ms))
	waiting := map[int]*begun{}
	for i := range ms {
		to, ok := e.Map[ms[i].Endpoint]
		if !ok && e.Other != nil {
			to, ok = *e.Other, true
		}
		switch {
		case !ok:
			results[i].Err = noEndpoint(ms[i].Endpoint)
		case ctx.Err() != nil:
			results[i].Err = notBegun(ctx)
		case to.Keep:
			keep, keepAt = append(keep, ms[i]), append(keepAt, i)
		default:
			m, b := ms[i], &begun{} // a copy: the forward may outlive the call
			waiting[i] = b
			e.calls.Go(func() {
				r, err := e.forward(ctx, m, to, b)
				answers <- answer{i, Result{r, err}}
			})
		}
	}
	if len(keep) > 0 {
		kept, err := e.Log.Keep(ctx, e.retention(), keep...)
		for n, i := range keepAt {
			if err != nil {
				results[i].Err = err
			} else {
				results[i] = kept[n]
			}
		}
	}
	gather(ctx, answers, waiting, results)
	took := time.Since(began)
	for i, m := range ms {
		results[i].Err = ReceiveFailure(results[i].Err)
		e.tell(ctx, &m, &results[i], took)
	}
	return results
}

// answer is the end of one forward of a batch.
type answer struct {
	at     int
	result Result
}

// begun decides a race: either the forward begins its call first, or the sender stops
// waiting first.
type begun struct{ state atomic.Int32 }

func (b *begun) begin() bool  { return b.state.CompareAndSwap(0, 1) }
func (b *begun) giveUp() bool { return b.state.CompareAndSwap(0, 2) }

// gather collects the answers of forwards until ctx ends. After that, a forward that has
// begun may still succeed; the sender hears at least about the others.
func gather(ctx context.Context, answers <-chan answer, waiting map[int]*begun, results []Result) {
	take := func(a answer) {
		results[a.at] = a.result
		delete(waiting, a.at)
	}
	for len(waiting) > 0 {
		select {
		case a := <-answers: // before ctx, where both are ready
			take(a)
			continue
		default:
		}
		select {
		case a := <-answers:
			take(a)
		case <-ctx.Done():
			for i, b := range waiting {
				results[i].Err = &Failure{Code: "timeout", MaybeDelivered: true, Err: errStillRuns}
				if b.giveUp() {
					results[i].Err = notBegun(ctx)
				}
			}
			return
		}
	}
}

var errStillRuns = errors.New("the endpoint has not answered yet")

// Wait returns when no forward runs any more or ctx ends.
func (e *Endpoints) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		e.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for forwards: %w", ctx.Err())
	}
}

// notBegun is the outcome of work that did not begin before the sender stopped waiting.
func notBegun(ctx context.Context) error {
	return &Failure{Outcome: NotStarted, Code: "not_started", Err: ctx.Err()}
}

func (e *Endpoints) retention() time.Duration {
	if e.Retention == 0 {
		return DefaultInboxRetention
	}
	return e.Retention
}

// forward calls the endpoint unless the id is known. If two calls of one id arrive at
// once, the second waits for the first and then finds its id.
func (e *Endpoints) forward(ctx context.Context, m Message, to Endpoint, b *begun) (Receipt, error) {
	if id, err := ParseID(string(m.ID)); err == nil {
		m.ID = id // all forms of an id share one flight
	}
	land, err := e.takeOff(ctx, flightKey{m.Source, m.ID})
	if err != nil {
		return Receipt{}, err
	}
	defer land()
	known, results, err := e.Log.Known(ctx, e.retention(), m)
	if ctx.Err() != nil {
		return Receipt{}, notBegun(ctx)
	}
	if err != nil {
		return Receipt{}, err
	}
	if known[0] {
		return results[0].Receipt, results[0].Err
	}
	leave, err := e.gate(m.Endpoint).enter(ctx)
	if err != nil {
		return Receipt{}, err
	}
	defer leave()
	if !b.begin() {
		return Receipt{}, notBegun(ctx)
	}
	// From here on the sender's patience does not matter: the effect may
	// happen, so its id must be recorded.
	ctx = context.WithoutCancel(ctx)
	reply, err := e.call(ctx, m, to)
	if err != nil {
		return Receipt{}, forwardFailure(err)
	}
	results, err = e.Log.Record(ctx, e.retention(), Processed{Message: m, Response: reply.Response})
	if err != nil {
		return Receipt{}, err
	}
	results[0].Receipt.Note = reply.Note
	return results[0].Receipt, results[0].Err
}

func (e *Endpoints) call(ctx context.Context, m Message, to Endpoint) (r Receipt, err error) {
	timeout := to.Timeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			e.logger().ErrorContext(ctx, "forward panicked", slog.String("message_id", string(m.ID)), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = &Failure{Code: "panic", Err: errors.New("the endpoint's handler panicked")}
		}
	}()
	return to.Forward.Deliver(ctx, m)
}

// takeOff waits until no other call of the key is in flight.
func (e *Endpoints) takeOff(ctx context.Context, k flightKey) (land func(), err error) {
	for {
		e.mu.Lock()
		if e.flights == nil {
			e.flights = map[flightKey]chan struct{}{}
		}
		other, busy := e.flights[k]
		if !busy {
			landed := make(chan struct{})
			e.flights[k] = landed
			e.mu.Unlock()
			return func() {
				e.mu.Lock()
				delete(e.flights, k)
				e.mu.Unlock()
				close(landed)
			}, nil
		}
		e.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, notBegun(ctx)
		}
	}
}

// withheld is an error whose text stays on this node, because it may hold such things as
// an address. The sender may only know the answer of the local program.
type withheld struct {
	code string
	err  error
}

func (w *withheld) Error() string { return w.err.Error() }
func (w *withheld) Unwrap() error { return w.err }

// Public is the text that the sender gets instead; empty: none.
func (w *withheld) Public() string {
	if status := HTTPStatus(w.code); status != 0 {
		return fmt.Sprintf("the program behind the endpoint answered %d", status)
	}
	return ""
}

// forwardFailure turns the local program's answer into what the sender needs to know:
// whether the same message can succeed later.
func forwardFailure(err error) error {
	f := *AsFailure(err)
	if f.Outcome != Permanent {
		f.Outcome = Transient
	}
	if f.Err != nil {
		f.Err = &withheld{f.Code, f.Err}
	}
	return &f
}

// ReceiveFailure classifies a Receiver's error for the sender. The library's own errors
// have their meaning, and a Failure stays as it is. Every other error comes from a handler
// and is transient. Nil stays nil.
func ReceiveFailure(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Failure](err); ok {
		return err
	}
	f := &Failure{Err: &withheld{err: err}}
	_, handlers := errors.AsType[*handlerError](err)
	switch {
	case handlers:
		f.Code = "handler_error"
	case errors.Is(err, ErrConflict):
		f.Outcome, f.Code, f.Reason = Permanent, "conflict", ReasonConflict
	case errors.Is(err, ErrTooOld):
		f.Outcome, f.Code, f.Reason = Permanent, "too_old", ReasonTooOld
	case errors.Is(err, ErrInvalid):
		f.Outcome, f.Code = Permanent, "invalid_message"
	case errors.Is(err, ErrDiskFull):
		f.Code = "disk_full"
	case errors.Is(err, ErrUnknown): // a repeat of the same id finds out
		f.Code, f.RetryAfter, f.MaybeDelivered = "unknown", comeAgain, true
	case errors.Is(err, ErrUnavailable):
		f.Code, f.RetryAfter = "unavailable", comeAgain
	case errors.Is(err, ErrClosed):
		f.Code = "stopping"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.Code = "timeout"
	default:
		f.Code = "handler_error"
	}
	return f
}

// comeAgain is when to try again after a store cannot do something now.
const comeAgain = 5 * time.Second

// tell logs and counts one incoming message (OI-18).
func (e *Endpoints) tell(ctx context.Context, m *Message, r *Result, took time.Duration) {
	if e.Observer != nil {
		e.Observer.ObserveReceived(ReceivedInfo{Source: m.Source, Endpoint: m.Endpoint, Duplicate: r.Receipt.Duplicate, Took: took, Err: r.Err})
	}
	log := e.logger()
	level := slog.LevelInfo
	if r.Err != nil || r.Receipt.Duplicate || r.Receipt.Note != "" {
		level = slog.LevelWarn
	}
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("message_id", string(m.ID)), slog.String("source", m.Source),
		slog.String("endpoint", m.Endpoint), slog.Duration("took", took),
	}
	switch {
	case r.Err != nil:
		log.LogAttrs(ctx, level, "message not taken", append(attrs, slog.Any("error", r.Err))...)
	case r.Receipt.Duplicate:
		log.LogAttrs(ctx, level, "duplicate received", attrs...)
	default:
		if r.Receipt.Note != "" {
			attrs = append(attrs, slog.String("note", r.Receipt.Note))
		}
		log.LogAttrs(ctx, level, "message processed", attrs...)
	}
}

func (e *Endpoints) logger() *slog.Logger {
	if e.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return e.Logger
}
