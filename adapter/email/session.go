package email

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email/smtp"
	"github.com/holdfast-mq/holdfast/internal/exchange"
)

const connecting = "connect"

// session is a connection over which a server accepts mail from us. It belongs to the goroutine
// that took it from the pool.
type session struct {
	client *smtp.Client
	server string // for people
	tls    string // for people; empty: in clear
	scrub  scrubber

	mails  int       // sent over this connection
	since  time.Time // when it became idle in the pool
	reused bool
	expiry *time.Timer // runs while it is in the pool
}

// cut ends the connection at once.
func (s *session) cut() { _ = s.client.Close() }

// quit ends the connection politely. Nothing depends on the answer (E36).
func (s *session) quit() {
	_, _ = s.client.Quit(2 * time.Second)
	s.cut()
}

// proof says how authentication went.
type proof struct {
	token   string // empty: no token was used
	refused bool   // the server refused our credentials
}

// connect makes a session. If a token is refused although tokens have worked before, it may have
// been withdrawn early; connect then tries another one, once (E17).
func (m *Mailer) connect(ctx context.Context) (*session, *holdfast.Failure) {
	if f := m.refused.stands(m.ours, time.Now()); f != nil {
		return nil, f
	}
	s, p, f := m.dial(ctx, "")
	if p.refused && p.token != "" && m.worked.Load() && strings.HasPrefix(f.Code, "535") {
		s, p, f = m.dial(ctx, p.token)
	}
	switch {
	case f == nil:
		m.worked.Store(true)
		m.refused.forget()
	case p.refused:
		m.worked.Store(false)
		if own, err := m.ours(); err == nil {
			m.refused.note(own, f, time.Now())
		}
	}
	return s, f
}

func (m *Mailer) dial(ctx context.Context, refused string) (s *session, p proof, f *holdfast.Failure) {
	set := &m.settings
	dialing, cancel := context.WithTimeout(ctx, set.timeouts.greeting)
	conn, err := m.dialer(dialing, "tcp", set.address())
	cancel()
	if err != nil {
		f := unconnected(ctx, connecting, err, &scrubber{})
		if f.Code == exchange.NoHost {
			f = m.turnedAway(f)
		}
		return nil, p, f
	}
	s = &session{server: set.address(), client: smtp.New(conn, smtp.Timeouts{Command: set.timeouts.command, Piece: set.timeouts.data, Answer: set.timeouts.afterDot})}
	if ip := conn.RemoteAddr(); ip != nil && ip.String() != s.server {
		s.server = fmt.Sprintf("%s (%s)", s.server, ip)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if f = m.enter(ctx, s, conn); f == nil {
		p, f = m.authenticate(ctx, s, refused)
	}
	if f == nil && !stop() {
		f = unconnected(ctx, connecting, net.ErrClosed, &s.scrub)
	}
	if f != nil {
		_ = conn.Close()
		return nil, p, f
	}
	return s, p, nil
}

// enter waits for the greeting and secures the connection as the settings demand.
func (m *Mailer) enter(ctx context.Context, s *session, conn net.Conn) *holdfast.Failure {
	set := &m.settings
	if set.tls == tlsImplicit {
		if f := m.encrypt(ctx, s, set.timeouts.greeting); f != nil {
			return f
		}
	}
	said, err := s.client.Greeting(set.timeouts.greeting)
	r := reply{said}
	switch {
	case err != nil:
		return m.speechless(unconnected(ctx, "greeting", err, &s.scrub))
	case r.Permanent():
		return m.turnedAway(r.failure("greeting", &s.scrub, holdfast.LaneFault))
	case r.Code != 220:
		return r.entry("greeting", &s.scrub)
	}
	m.strikes.Store(0)
	name := m.ehlo(conn)
	if f := m.hello(ctx, s, name); f != nil || set.tls != tlsStart && set.tls != tlsOpportunistic {
		return f
	}
	encrypted, f := m.startTLS(ctx, s)
	if f != nil || !encrypted {
		return f
	}
	return m.hello(ctx, s, name)
}

// speechless adds a hint if the server sends no greeting: a port that waits for our TLS handshake
// is just as silent.
func (m *Mailer) speechless(f *holdfast.Failure) *holdfast.Failure {
	if f.Code == exchange.ConnectTime && m.settings.tls != tlsImplicit {
		f.Err = fmt.Errorf("%w (a port with TLS from the first byte, such as 465, sends nothing: the setting tls may have to be implicit)", f.Err)
	}
	return f
}

// hello sends EHLO, once for each layer of security (F1-60).
func (m *Mailer) hello(ctx context.Context, s *session, name string) *holdfast.Failure {
	said, err := s.client.Hello(name)
	switch {
	case err != nil:
		return unconnected(ctx, "EHLO", err, &s.scrub)
	case !said.OK():
		return reply{said}.entry("EHLO", &s.scrub)
	}
	return nil
}

// startTLS asks for encryption. If the server does not offer it, nothing more is sent, unless the
// settings say opportunistic. If the handshake fails, nothing more is sent in any case.
func (m *Mailer) startTLS(ctx context.Context, s *session) (encrypted bool, f *holdfast.Failure) {
	if _, offered := s.client.Offers("STARTTLS"); !offered {
		if m.settings.tls == tlsOpportunistic {
			return false, nil
		}
		return false, hold("starttls_missing", "STARTTLS: the server does not offer it, or somebody on the way hides that; nothing was sent")
	}
	said, err := s.client.StartTLS()
	switch {
	case err != nil:
		return false, unconnected(ctx, "STARTTLS", err, &s.scrub)
	case said.Code != 220:
		return false, reply{said}.entry("STARTTLS", &s.scrub)
	}
	return true, m.encrypt(ctx, s, m.settings.timeouts.command)
}

func (m *Mailer) encrypt(ctx context.Context, s *session, within time.Duration) *holdfast.Failure {
	handshake, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	state, err := s.client.Encrypt(handshake, m.settings.conf)
	if err != nil {
		f := unconnected(ctx, "TLS", err, &s.scrub)
		if f.Code == exchange.TLS && m.settings.tls == tlsImplicit {
			f.Err = fmt.Errorf("%w (a port that begins in clear, such as 587 or 25, does not begin with TLS: the setting tls may have to be starttls)", f.Err)
		}
		return f
	}
	s.tls = shown(&state)
	return nil
}

// turnedAway counts failures that may be temporary, such as those of a name server or of a mail
// server that is starting. The third in a row is a fault.
func (m *Mailer) turnedAway(f *holdfast.Failure) *holdfast.Failure {
	f.Outcome = holdfast.Unreachable
	if m.strikes.Add(1) >= 3 {
		f.Outcome = holdfast.LaneFault
	}
	return f
}

// ehlo returns the name that we give: the one in the settings, the machine's name if it means
// something to others, or our address.
func (m *Mailer) ehlo(conn net.Conn) string {
	if m.settings.ehlo != "" {
		return m.settings.ehlo
	}
	if name, err := os.Hostname(); err == nil && strings.Contains(name, ".") && isHost(name) && !isLocal(name) {
		return name
	}
	host, _, err := net.SplitHostPort(fmt.Sprint(conn.LocalAddr()))
	ip := net.ParseIP(host)
	switch {
	case err != nil || ip == nil:
		return "[127.0.0.1]"
	case ip.To4() != nil:
		return "[" + ip.To4().String() + "]"
	}
	return "[IPv6:" + ip.String() + "]"
}

// session takes a working connection from the pool, or makes one. With renew it always makes one,
// since a kept connection was turned away. The caller gives it back.
func (m *Mailer) session(ctx context.Context, renew bool) (*session, *holdfast.Failure) {
	if err := m.pool.enter(ctx); err != nil {
		f := &holdfast.Failure{Outcome: holdfast.NotStarted, Code: exchange.Canceled, Err: errors.New("stopped before a connection was free")}
		if !errors.Is(ctx.Err(), context.Canceled) {
			f.Outcome, f.Code = holdfast.Unreachable, "no_connection"
		}
		return nil, f
	}
	for s := m.pool.take(); s != nil; s = m.pool.take() {
		if renew {
			s.quit() // a new connection takes its place
			break
		}
		if s.alive(ctx, m.settings.timeouts.command) {
			return s, nil
		}
		s.cut()
	}
	s, f := m.connect(ctx)
	if f != nil {
		m.pool.leave()
	}
	return s, f
}

// restless is how long an idle connection is trusted without a NOOP.
const restless = 5 * time.Second

// alive checks that an idle connection still works (E29).
func (s *session) alive(ctx context.Context, within time.Duration) bool {
	if time.Since(s.since) <= restless {
		return true
	}
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	r, err := s.client.Noop(min(within, 10*time.Second))
	return err == nil && r.OK()
}

// giveBack ends the use of a session. If it is not sound it is closed.
func (m *Mailer) giveBack(s *session, sound bool) {
	defer m.pool.leave()
	switch {
	case !sound:
		s.cut()
	case s.mails >= m.settings.perConnection || !m.pool.put(s):
		s.quit()
	}
}
