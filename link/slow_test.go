package link_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// line carries so many bytes a second from a site to central, over all its
// connections together.
type line struct {
	rate int
	w    *world

	mu   sync.Mutex
	free time.Time // when it has carried all that was given to it
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.w.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &slowConn{conn, l}, nil
}

// carry waits until the line has carried n bytes more.
func (l *line) carry(n int) {
	l.mu.Lock()
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
	wait := time.Until(l.free)
	l.mu.Unlock()
	time.Sleep(wait)
}

type slowConn struct {
	net.Conn
	line *line
}

func (c *slowConn) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		part := p[n:min(n+1400, len(p))]
		c.line.carry(len(part))
		var wrote int
		wrote, err = c.Conn.Write(part)
		n += wrote
	}
	return n, err
}

// backlog is messages with a payload of 1 KB.
func (p *plant) backlog(from, to int) {
	p.w.t.Helper()
	ms := make([]holdfast.Message, 0, to-from)
	for n := from; n < to; n++ {
		m := message(n)
		m.Payload = fmt.Appendf(nil, `{"n":%d,"text":%q}`, n, strings.Repeat("x", 980))
		ms = append(ms, m)
	}
	if _, err := p.db.Enqueue(p.w.t.Context(), ms...); err != nil {
		p.w.t.Fatal(err)
	}
}

// A backlog drains over a slow line at nearly the line's rate, and what is
// handed in meanwhile does not wait for its end.
func TestABacklogDrainsOverASlowLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kbit, messages int
		live           time.Duration
	}{
		"256 kbit/s": {256, 3000, 30 * time.Second},
		"64 kbit/s":  {64, 1000, 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, func(w *world) {
				t := w.t
				slow := &line{rate: c.kbit * 1000 / 8, w: w}
				p := w.site("plant-7", func(conf *link.SiteConfig) {
					conf.Dial = slow.dial
					conf.Overdue = conf.Outbox.(*sqlite.DB).Overdue
				})
				p.backlog(0, c.messages)
				began := time.Now()
				p.run(true)
				defer p.stop()
				time.Sleep(30 * time.Second)
				for n := range 3 {
					id := p.live(c.messages + n)
					w.eventually(c.live, "the live message delivered", func() bool {
						r, err := p.db.Get(t.Context(), id)
						return err == nil && r.State == holdfast.Delivered
					})
				}
				if p.db.Counts().Pending == 0 {
					t.Error("the backlog was gone before the live messages: the test shows nothing")
				}
				p.delivered(time.Hour)
				took := time.Since(began)
				// An envelope adds a quarter; what is over is for what was sent in vain.
				if alone := time.Duration(c.messages*1250) * time.Second / time.Duration(slow.rate); took > alone*5/4 {
					t.Errorf("%d messages took %s; the line carries them in %s", c.messages, took, alone)
				}
				if got := len(w.kept()); got != c.messages+3 {
					t.Errorf("central has %d messages, want %d", got, c.messages+3)
				}
				if s := p.Status(); !s.Connected || !s.Stalled.IsZero() {
					t.Errorf("got %+v", s)
				}
			})
		})
	}
}

func (p *plant) live(n int) holdfast.ID {
	p.w.t.Helper()
	p.put(n, n+1)
	return message(n).ID
}

// What cannot be made smaller has the time that it takes.
func TestALargeMessageGetsOverASlowLine(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		slow := &line{rate: 64000 / 8, w: w}
		p := w.site("plant-7", func(conf *link.SiteConfig) {
			conf.Dial = slow.dial
			conf.Overdue = conf.Outbox.(*sqlite.DB).Overdue
		})
		var ms []holdfast.Message
		for n := range 4 {
			m := message(n)
			m.Payload = []byte(strconv.Quote(strings.Repeat("x", 900<<10)))
			ms = append(ms, m)
		}
		if _, err := p.db.Enqueue(t.Context(), ms...); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		p.run(true)
		defer p.stop()
		p.delivered(time.Hour)
		if took := time.Since(began); took > 30*time.Minute {
			t.Errorf("4 messages of 900 KB took %s; the line carries them in 8 minutes", took)
		}
	})
}
