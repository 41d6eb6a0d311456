package serve

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/time/rate"
)

// longestLine is how much is shown of the message of a line that anybody can
// cause.
const longestLine = 300

// FewLines is a log for what anybody can cause who connects, once for each
// request or more: of its lines 200 are written at once and two a second, over
// all callers, and the beginning of a long message. Nil log: silent.
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

// Handle writes the record if there were not too many.
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
