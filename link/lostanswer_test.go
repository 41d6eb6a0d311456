package link_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/link"
)

// losing is a way to central on which the first answers to commands are lost.
type losing struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	mu   sync.Mutex
	lost int
}

func (l *losing) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := l.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &losingConn{c, l}, nil
}

type losingConn struct {
	net.Conn
	way *losing
}

func (c *losingConn) Write(p []byte) (int, error) {
	c.way.mu.Lock()
	lose := c.way.lost < 1 && bytes.Contains(p, []byte("POST "+link.AnswersPath+" "))
	if lose {
		c.way.lost++
	}
	c.way.mu.Unlock()
	if lose { // in the middle: of what was not begun net/http makes a second request by itself
		n, _ := c.Conn.Write(p[:len(p)/2])
		_ = c.Close()
		return n, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// lines is a log that is written by many.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// F1-99: a command that comes again because its answer was lost is answered as
// before, and not done again.
func TestACommandWhoseAnswerWasLostIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		var log lines
		p := w.site("plant-7", func(c *link.SiteConfig) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		p.park(0, 1)
		way := &losing{dial: w.direct}
		w.via(way.Dial)
		p.run(false)
		defer p.stop()
		w.eventually(time.Minute, "connected", func() bool { return p.Status().Connected })
		if r, err := w.central.Outbox("plant-7").Get(t.Context(), message(0).ID); err != nil || r.Message.ID != message(0).ID {
			t.Errorf("got %+v, %v", r, err)
		}
		way.mu.Lock()
		lost := way.lost
		way.mu.Unlock()
		if n := log.count("command of central"); n != 1 || lost != 1 {
			t.Errorf("done %d times, answers lost %d times; want once each", n, lost)
		}
	})
}
