package link_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
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

// slowOnce is an outbox that does not come to an end with its first call.
type slowOnce struct {
	holdfast.Outbox
	calls atomic.Int32
}

func (s *slowOnce) Requeue(ctx context.Context, id holdfast.ID, r holdfast.Requeue) (holdfast.Record, error) {
	if s.calls.Add(1) == 1 {
		<-ctx.Done()
		return holdfast.Record{}, ctx.Err()
	}
	return s.Outbox.Requeue(ctx, id, r)
}

// A command that the site's store did not come to the end of is tried again when it
// comes again: that it once took too long is not its answer for ever.
func TestACommandThatTookTooLongIsTriedAgain(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7", func(c *link.SiteConfig) { c.Outbox = &slowOnce{Outbox: c.Outbox} })
		p.park(0, 1)
		w.away()
		var answers []string
		w.serve((*http.Server).Serve, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == link.AnswersPath {
				text, _ := io.ReadAll(r.Body)
				answers = append(answers, string(text))
				_, _ = fmt.Fprint(rw, `{}`)
				return
			}
			_, _ = fmt.Fprint(rw, `{"incarnation":"i","commands":[{"id":"c-1","verb":"retry","message":"m-0"}]}`)
		}))
		p.run(false)
		w.eventually(time.Minute, "done", func() bool { return p.db.Counts().Pending == 1 })
		time.Sleep(time.Second)
		p.stop()
		w.away()
		if len(answers) < 3 || !strings.Contains(answers[0], `"problem":"unavailable"`) || strings.Contains(answers[1], `"problem"`) {
			t.Errorf("got %.300q, want that it could not be done, and then that it is", answers)
			return
		}
		if answers[2] != answers[1] {
			t.Errorf("done, it is answered with %s, and then with %s", answers[1], answers[2])
		}
	})
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
