package serve

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/time/rate"
)

// longestLine is the most bytes of the message of a line that anybody can cause.
const longestLine = 300

// FewLines returns a log for lines that every caller can cause, once for each request or more. It writes 200
// lines at once and two a second, over all callers, and shortens long messages. Nil log: silent.
func FewLines(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(fewLines{log.Handler(), rate.NewLimiter(linesPerSecond, lineBurst)})
}

type fewLines struct {
	slog.Handler
	lines *rate.Limiter
}

// Handle writes the record unless there were too many.
func (h fewLines) Handle(ctx context.Context, r slog.Record) error {
	if !h.lines.Allow() {
		return nil
	}
	if len(r.Message) > longestLine {
		r.Message = fmt.Sprintf("%s… (%d bytes)", r.Message[:longestLine], len(r.Message))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the bound.
func (h fewLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return fewLines{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup keeps the bound.
func (h fewLines) WithGroup(name string) slog.Handler {
	return fewLines{h.Handler.WithGroup(name), h.lines}
}
