package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"
)

// Payload is content that knows its endpoint, so that the name stands in one place for
// both ends. Endpoint must not depend on the value.
type Payload interface{ Endpoint() string }

// Send enqueues a payload for a destination, encoded as JSON. For the other fields of a
// Message, use Enqueuer.Enqueue.
func Send[P Payload](ctx context.Context, to Enqueuer, destination string, p P) error {
	endpoint, err := endpointOf(p)
	if err != nil {
		return fmt.Errorf("send to %s: %w", destination, err)
	}
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("send %s to %s: encode payload: %w", endpoint, destination, err)
	}
	_, err = to.Enqueue(ctx, Message{Destination: destination, Endpoint: endpoint, Payload: b})
	return err
}

// Register makes h the inbox's handler for the endpoint of P. Payloads are decoded from
// JSON. A payload that cannot be decoded is a permanent failure: the sender parks it. P
// must be a plain value. Each endpoint can have one handler.
func Register[T any, P Payload](in *Inbox[T], h func(ctx context.Context, tx T, p P) error) error {
	var zero P
	if t := reflect.TypeFor[P](); t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return fmt.Errorf("register %s: %w: use the value type, whose zero value can say its endpoint", t, ErrInvalid)
	}
	endpoint, err := endpointOf(zero)
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	return in.Handle(endpoint, func(ctx context.Context, tx T, m Message) ([]byte, error) {
		var p P
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			return nil, &Failure{
				Outcome: Permanent, Code: "undecodable", Reason: ReasonUndecodable,
				Err: fmt.Errorf("decode payload of %s into %T: %w", endpoint, p, err),
			}
		}
		return nil, h(ctx, tx, p)
	})
}

// endpointOf asks a payload for its endpoint. A payload may be nil, or may embed a nil
// interface or pointer; a panic becomes an error.
func endpointOf(p Payload) (endpoint string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: Endpoint of %T panics: %v; it must not depend on the value", ErrInvalid, p, r)
		}
	}()
	if p == nil {
		return "", fmt.Errorf("%w: the payload is nil", ErrInvalid)
	}
	endpoint = p.Endpoint()
	if err := checkName("endpoint", endpoint); err != nil {
		return "", fmt.Errorf("%w: endpoint of %T: %w", ErrInvalid, p, err)
	}
	return endpoint, nil
}

// Handle makes h the handler of messages for an endpoint, for Receive and ReceiveBatch.
// Each endpoint can have one handler.
func (in *Inbox[T]) Handle(endpoint string, h Handler[T]) error {
	if err := checkName("endpoint", endpoint); err != nil {
		return fmt.Errorf("handle: %w: %w", ErrInvalid, err)
	}
	if h == nil {
		return fmt.Errorf("handle %s: %w: the handler is nil", endpoint, ErrInvalid)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, taken := in.handlers[endpoint]; taken {
		return fmt.Errorf("handle %s: %w: the endpoint has a handler already", endpoint, ErrInvalid)
	}
	if in.handlers == nil {
		in.handlers = map[string]Handler[T]{}
	}
	in.handlers[endpoint] = h
	return nil
}

func (in *Inbox[T]) handler(m *Message) (Handler[T], error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if h, ok := in.handlers[m.Endpoint]; ok {
		return contained(h), nil
	}
	return nil, noEndpoint(m.Endpoint)
}

// contained turns a panic of a handler into an error of its message, so that the others of
// a batch are not affected.
func contained[T any](h Handler[T]) Handler[T] {
	return func(ctx context.Context, tx T, m Message) (response []byte, err error) {
		defer func() {
			if p := recover(); p != nil {
				response, err = nil, panicked(p)
			}
		}()
		return h(ctx, tx, m)
	}
}

// panicked says where the handler panicked. It gives the value only if it is a runtime
// error, else its type: other values may hold a payload.
func panicked(p any) error {
	what := fmt.Sprintf("%T", p)
	if e, ok := p.(runtime.Error); ok {
		what = e.Error()
	}
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)]) // starting at the panic
	f, more := frames.Next()
	for more && strings.HasPrefix(f.Function, "runtime.") {
		f, more = frames.Next()
	}
	return &Failure{Code: "handler_panic", Err: fmt.Errorf("handler panicked at %s:%d: %s", path.Base(f.File), f.Line, what)}
}

func noEndpoint(name string) error {
	return &Failure{
		Outcome: Permanent, Code: "no_endpoint", Reason: ReasonNoEndpoint,
		Err: fmt.Errorf("endpoint %q is not known here", clip(name)),
	}
}

// Receive implements Receiver with the registered handlers, so that an inbox can be given
// to a transport's server as it is.
func (in *Inbox[T]) Receive(ctx context.Context, m Message) (Receipt, error) {
	h, err := in.handler(&m)
	if err != nil {
		return Receipt{}, err
	}
	r, err := in.Process(ctx, m, h)
	return r, ReceiveFailure(err)
}

// ReceiveBatch implements BatchReceiver. Each message has a transaction of its own, one
// after the other; with Together, one transaction holds all.
func (in *Inbox[T]) ReceiveBatch(ctx context.Context, ms []Message) []Result {
	results := make([]Result, len(ms))
	if !in.Together {
		for i := range ms {
			if ctx.Err() != nil {
				results[i].Err = notBegun(ctx)
				continue
			}
			results[i].Receipt, results[i].Err = in.Receive(ctx, ms[i])
		}
		return results
	}
	var known []Message
	var at []int
	for i := range ms {
		_, err := in.handler(&ms[i])
		if err == nil && ctx.Err() != nil {
			err = notBegun(ctx)
		}
		if err != nil {
			results[i].Err = err
			continue
		}
		known, at = append(known, ms[i]), append(at, i)
	}
	got := in.ProcessBatch(ctx, known, func(ctx context.Context, tx T, m Message) ([]byte, error) {
		h, err := in.handler(&m)
		if err != nil {
			return nil, err
		}
		return h(ctx, tx, m)
	})
	for n, i := range at {
		results[i] = Result{got[n].Receipt, ReceiveFailure(got[n].Err)}
	}
	return results
}

// ProcessBatch runs h for each new message, all in one transaction, with one sync in all.
// If h fails for a message, only that message is undone. A fault of the transaction, such
// as a full disk or the end of ctx, is the result of every message.
func (in *Inbox[T]) ProcessBatch(ctx context.Context, ms []Message, h Handler[T]) []Result {
	if len(ms) == 0 {
		return nil
	}
	return in.Store.ProcessBatch(ctx, ms, in.retention(), markErrors(h))
}

// markErrors marks the errors of a handler as such.
func markErrors[T any](h Handler[T]) Handler[T] {
	return func(ctx context.Context, tx T, m Message) ([]byte, error) {
		response, err := h(ctx, tx, m)
		if err == nil {
			return response, nil
		}
		if _, ok := errors.AsType[*Failure](err); ok {
			return nil, err // it is classified already
		}
		return nil, &handlerError{err}
	}
}
