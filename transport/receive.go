package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/wire"
)

// CodePanic is the code of a message whose handler panicked.
const CodePanic = "panic"

// budget is the instant after which nothing new is begun; zero: no limit.
type budget struct{ until time.Time }

func budgetOf(r *http.Request, started time.Time) budget {
	ms, err := strconv.ParseUint(r.Header.Get(HeaderBudget), 10, 32)
	if err != nil {
		return budget{}
	}
	return budget{started.Add(time.Duration(ms) * time.Millisecond)}
}

func (b budget) spent() bool { return !b.until.IsZero() && !time.Now().Before(b.until) }

// begin waits for a free slot. It returns false if the sender stops waiting first. If it returns
// true, the caller must call end.
func (s *Server) begin(ctx context.Context, b budget) (end func(), ok bool) {
	if b.spent() || ctx.Err() != nil {
		return nil, false
	}
	if !b.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, b.until)
		defer cancel()
	}
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, true
	case <-ctx.Done():
		return nil, false
	}
}

// keep moves the body of a proven sender from the room of strangers to the room for work. It
// returns false if that has no room in time. If it returns true, the caller must call end.
func (s *Server) keep(r *http.Request, b budget, bytes int) (end func(), ok bool) {
	if s.conf.Authenticate != nil {
		return func() {}, true // the caller was identified and limited before its body was read
	}
	ctx := r.Context()
	if !b.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, b.until)
		defer cancel()
	}
	end, ok = s.proven.Hold(ctx, int64(bytes), int64(bytes))
	if ok && !serve.Known(r) {
		end()
		return nil, false
	}
	return end, ok
}

func notBegun() wire.Reply {
	return wire.ReplyTo(holdfast.Receipt{}, &holdfast.Failure{Outcome: holdfast.NotStarted})
}

// receive hands one message to the Receiver. A call that has begun ends by itself or at the
// server's time-out, not when the sender stops waiting. Otherwise work that takes longer than the
// sender's patience would never finish; so the next attempt finds it done (source: its failure
// table).
func (s *Server) receive(ctx context.Context, b budget, m *holdfast.Message) wire.Reply {
	end, ok := s.begin(ctx, b)
	if !ok {
		return notBegun()
	}
	defer end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.conf.Timeout)
	defer cancel()
	receipt, err := s.call(ctx, m)
	s.note(ctx, m, err)
	return wire.ReplyTo(receipt, err)
}

// call limits a panic of the Receiver to its message.
func (s *Server) call(ctx context.Context, m *holdfast.Message) (receipt holdfast.Receipt, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(ctx, m, p)
		}
	}()
	return s.conf.Receiver.Receive(ctx, *m)
}

func (s *Server) callBatch(ctx context.Context, to holdfast.BatchReceiver, ms []holdfast.Message) (results []holdfast.Result) {
	defer func() {
		if p := recover(); p != nil {
			f := s.panicked(ctx, &ms[0], p)
			f.MaybeDelivered = true // each row commits by itself
			results = make([]holdfast.Result, len(ms))
			for i := range results {
				results[i].Err = f
			}
		}
	}()
	return to.ReceiveBatch(ctx, ms)
}

// panicked logs where the panic happened. It logs the value only if it is a runtime error: other
// values may hold a payload.
func (s *Server) panicked(ctx context.Context, m *holdfast.Message, p any) *holdfast.Failure {
	what := fmt.Sprintf("%T", p)
	if e, ok := p.(runtime.Error); ok {
		what = e.Error()
	}
	s.few.LogAttrs(ctx, slog.LevelError, "receiver panicked",
		slog.String("message_id", string(m.ID)), slog.String("source", m.Source), slog.String("endpoint", m.Endpoint),
		slog.String("panic", what), slog.String("stack", string(debug.Stack())))
	return &holdfast.Failure{Code: CodePanic, Err: errors.New("receiver panicked: " + what)}
}

// note logs an error that the sender is not told.
func (s *Server) note(ctx context.Context, m *holdfast.Message, err error) {
	if err == nil {
		return
	}
	f := wire.Classify(err)
	if f.Code == CodePanic {
		return // logged already
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "message not received",
		slog.String("message_id", string(m.ID)), slog.String("source", m.Source), slog.String("endpoint", m.Endpoint),
		slog.String("outcome", f.Outcome.String()), slog.String("code", f.Code), slog.Any("error", err))
}
