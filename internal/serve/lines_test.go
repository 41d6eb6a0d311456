package serve_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// F1-03: what anybody can cause is 200 lines at once and two a second, also
// where a line has attributes of its own.
func TestFewLinesAreWritten(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var out bytes.Buffer
		few := serve.FewLines(slog.New(slog.NewTextHandler(&out, nil)))
		write := func() (lines int) {
			out.Reset()
			for range 1000 {
				few.With(slog.String("remote", "192.0.2.7")).Error("failed")
				few.WithGroup("request").Error("failed", slog.Int("id", 1))
			}
			return strings.Count(out.String(), "\n")
		}
		if got := write(); got != 200 {
			t.Errorf("got %d lines at once, want 200", got)
		}
		time.Sleep(5 * time.Second)
		if got := write(); got != 10 {
			t.Errorf("got %d lines after 5 s, want 10", got)
		}
		serve.FewLines(nil).Error("nobody reads it")
	})
}
