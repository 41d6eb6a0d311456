package storetest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
)

// logs tests what a store logs about messages that it has accepted, once they are on disk (OI-18):
// one line per message, at Info, and none for a duplicate.
func logs(t *testing.T, m Maker) {
	t.Helper()
	var written lines
	s := m.Open(t, slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	written.take() // lines of the start
	for range 2 {
		if _, err := s.Enqueue(t.Context(), fill([]holdfast.Message{{ID: "m", Destination: "a"}, {ID: "n", Destination: "b"}})...); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`level=INFO msg="message enqueued" message_id=m destination=a endpoint=E`,
		`level=INFO msg="message enqueued" message_id=n destination=b endpoint=E`,
	}
	if diff := cmp.Diff(written.take(), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// lines collects the lines of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(l.text.String())
	l.text.Reset()
	return strings.Split(text, "\n")
}
