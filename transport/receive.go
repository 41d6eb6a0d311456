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

// budget is the instant after which nothing is begun; zero: there is none.
type budget struct{ until time.Time }

func budgetOf(r *http.Request, started time.Time) budget {
	ms, err := strconv.ParseUint(r.Header.Get(HeaderBudget), 10, 32)
	if err != nil {
		return budget{}
	}
	return budget{started.Add(time.Duration(ms) * time.Millisecond)}
}

func (b budget) spent() bool { return !b.until.IsZero() && !time.Now().Before(b.until) }

// begin waits for a free slot and reports false if the sender has stopped
// waiting first. Whoever gets true calls end.
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

// keep takes a body whose sender is proven out of what strangers hold, and
// holds it against the room of all that is at work. It reports false if there
// is none in time. Whoever gets true calls end.
func (s *Server) keep(r *http.Request, b budget, bytes int) (end func(), ok bool) {
	if s.conf.Authenticate != nil {
		return func() {}, true // who calls is known, and bounded, before the body is read
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

// receive hands one message to the Receiver. A call that has begun ends by
// itself or at the server's time-out, not when the sender stops waiting: else
// what takes longer than a sender's patience would never be done, while so
// the next attempt finds it done (source: its failure table).
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

// call contains a panic in the Receiver to its message.
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
			f.MaybeDelivered = true // each row commits on its own
			results = make([]holdfast.Result, len(ms))
			for i := range results {
				results[i].Err = f
			}
		}
	}()
	return to.ReceiveBatch(ctx, ms)
}

// panicked logs where, and what only if it is the runtime's own words: other
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

// note logs what the sender is not told.
func (s *Server) note(ctx context.Context, m *holdfast.Message, err error) {
	if err == nil {
		return
	}
	f := wire.Classify(err)
	if f.Code == CodePanic {
		return // it has been logged
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "message not received",
		slog.String("message_id", string(m.ID)), slog.String("source", m.Source), slog.String("endpoint", m.Endpoint),
		slog.String("outcome", f.Outcome.String()), slog.String("code", f.Code), slog.Any("error", err))
}
