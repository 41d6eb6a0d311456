package email_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/holdfast-mq/holdfast/adapter/email"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// E29: a connection that rested and was closed meanwhile is replaced in the
// same attempt, however the server says that it is closed; and a rest of five seconds or
// more is asked about first.
func TestConnectionsThatEndedAreReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at, text string
		rest     time.Duration
	}{
		"421 at NOOP":   {"NOOP", "421 4.4.2 idle", 10 * time.Second},
		"end at NOOP":   {"NOOP", hangUp, 10 * time.Second},
		"hangs at NOOP": {"NOOP", silent, 10 * time.Second},
		"421 at MAIL":   {"MAIL", "421 4.4.2 idle", time.Second},
		"end at MAIL":   {"MAIL", hangUp, time.Second},
		"503 at MAIL":   {"MAIL", "503 5.5.1 in the middle of another mail", time.Second}, // says nothing of this one
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				armed := false
				s := &server{answer: func(n int, line string) string {
					if n == 1 && armed && strings.HasPrefix(line, c.at) {
						return c.text
					}
					return ""
				}}
				m := open(t, with(nil), s)
				for range 2 {
					if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "accepted" {
						t.Error(got)
					}
					armed = true
					time.Sleep(c.rest)
				}
				if mails, _, dials := s.seen(); len(mails) != 2 || dials != 2 {
					t.Errorf("%d mails over %d connections", len(mails), dials)
				}
				m.Close()
				s.ending.Wait()
			})
		})
	}
}

// E60: a new connection that ends at MAIL is a failure, and not tried again and again.
func TestANewConnectionIsNotReplaced(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{answer: on(map[string]string{"MAIL": hangUp})}
		if got := told(send(t, with(nil), s, people("a@x.test"))); got != "waiting; transient connection_lost" || s.dials != 1 {
			t.Errorf("%s after %d dials", got, s.dials)
		}
	})
}

// Connections are kept for the next mail, closed when they rested long
// enough, and used for so many mails.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{}
		m := open(t, with(object{"perConnection": 3}), s)
		for range 6 {
			if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "accepted" {
				t.Error(got)
			}
		}
		if _, _, dials := s.seen(); dials != 2 || len(s.got("QUIT")) != 2 || len(s.got("RSET")) != 0 {
			t.Errorf("%d connections, %d goodbyes", dials, len(s.got("QUIT")))
		}
		m.Send(t.Context(), example(), people("a@x.test"), nil)
		time.Sleep(19 * time.Second)
		if len(s.got("QUIT")) != 2 {
			t.Error("closed before its time")
		}
		time.Sleep(2 * time.Second)
		if len(s.got("QUIT")) != 3 {
			t.Error("not closed when it had rested long enough")
		}
		m.Send(t.Context(), example(), people("a@x.test"), nil)
		m.Close()
		if len(s.got("QUIT")) != 4 {
			t.Error("Close left a connection")
		}
		m.Send(t.Context(), example(), people("a@x.test"), nil)
		s.ending.Wait() // none is kept after Close
	})
}

// A mail to nobody whom the server takes leaves the connection clean for the next.
func TestARefusedMailLeavesTheConnectionClean(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{answer: on(map[string]string{"RCPT TO:<a": "550 5.1.1 no"})}
		m := open(t, with(nil), s)
		m.Send(t.Context(), example(), people("a@x.test"), nil)
		if got := told(m.Send(t.Context(), example(), people("b@x.test"), nil)); got != "accepted" {
			t.Error(got)
		}
		if _, _, dials := s.seen(); dials != 1 || len(s.got("RSET")) != 1 || len(s.got("EHLO")) != 1 {
			t.Errorf("%d connections, got %q", dials, s.lines)
		}
		m.Close()
		s.ending.Wait()
	})
}

// E30: never more connections than the cap, those that say goodbye included;
// who waits for one is let go by a stop.
func TestConnectionsAreCapped(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{answer: func(_ int, line string) string {
			time.Sleep(time.Second)
			return ""
		}}
		m := open(t, with(object{"connections": 2, "perConnection": 3}), s)
		ends := make(chan string)
		for i := range 50 {
			go func() {
				time.Sleep(time.Duration(i%7) * 5 * time.Second)
				ends <- told(m.Send(t.Context(), example(), people(fmt.Sprintf("r%d@x.test", i)), nil))
			}()
		}
		for range 50 {
			if got := <-ends; got != "accepted" {
				t.Error(got)
			}
		}
		if s.peak > 2 {
			t.Errorf("%d connections at once", s.peak)
		}
		ctx, stop := context.WithCancel(t.Context())
		for range 2 {
			go func() { ends <- told(m.Send(t.Context(), example(), people("a@x.test"), nil)) }()
		}
		synctest.Wait()
		go func() { ends <- told(m.Send(ctx, example(), people("a@x.test"), nil)) }()
		synctest.Wait()
		stop()
		if got := <-ends; got != "waiting; not_started canceled" {
			t.Error(got)
		}
		for range 2 {
			<-ends
		}
		m.Close()
		s.ending.Wait()
	})
}

// A server that nobody has asked about gets four connections at a time.
func TestAServerGetsFourConnections(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{answer: func(int, string) string {
			time.Sleep(time.Second)
			return ""
		}}
		m := open(t, with(object{}), s)
		ends := make(chan string)
		for range 12 {
			go func() { ends <- told(m.Send(t.Context(), example(), people("a@x.test"), nil)) }()
		}
		for range 12 {
			if got := <-ends; got != "accepted" {
				t.Error(got)
			}
		}
		if s.peak != 4 {
			t.Errorf("%d connections at once, want 4", s.peak)
		}
		m.Close()
		s.ending.Wait()
	})
}

// Another server than ours: that of go-smtp, over TCP.
type backend struct{ session }

type session struct {
	smtp.Session
	got chan string
}

func (b *backend) NewSession(*smtp.Conn) (smtp.Session, error) { return &b.session, nil }

func (s *session) Reset() {}

func (s *session) Logout() error { return nil }

func (s *session) Mail(string, *smtp.MailOptions) error { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "b@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	return nil
}

// E40, E41: what another server has read of a body is what was written, dots
// at the start of lines and long lines included.
func TestBodiesArriveAsTheyWere(t *testing.T) {
	t.Parallel()
	b := &backend{session{got: make(chan string, 1)}}
	srv := smtp.NewServer(b)
	srv.Domain, srv.MaxRecipients, srv.MaxLineLength = "mail.test", 2, 998
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() { _ = srv.Serve(l) })
	t.Cleanup(func() {
		_ = srv.Close()
		ended.Wait()
	})
	m, err := email.New(encode(t, with(object{"port": l.Addr().(*net.TCPAddr).Port})), email.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for name, body := range bodies() {
		n := example()
		n.Body = body
		if got := told(m.Send(t.Context(), n, people("a@x.test", "b@x.test"), nil)); got != "accepted; refused 550 5.1.1" {
			t.Fatalf("%s: %s", name, got)
		}
		if got := parse(t, <-b.got).body; got != normal(body) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	// E5 against a server that is not ours: two recipients are the most.
	if got := told(m.Send(t.Context(), example(), people("a@x.test", "c@x.test", "d@x.test", "e@x.test"), nil)); got != "accepted; accepted; accepted; accepted" {
		t.Error(got)
	}
}
