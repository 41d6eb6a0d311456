package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
)

const connecting = "connect"

// session is a connection to a server that takes mail from us. It belongs to
// who has taken it from the pool.
type session struct {
	client *smtp.Client
	wire   *wire
	server string // for people
	tls    string // for people; empty: in clear
	scrub  scrubber

	mails  int       // sent over it
	since  time.Time // idle, in the pool
	reused bool
	expiry *time.Timer // while it is in the pool
}

// cut ends the connection at once.
func (s *session) cut() { _ = s.wire.Close() }

// quit ends the connection as is polite. Nothing depends on the answer (E36).
func (s *session) quit() {
	s.client.CommandTimeout = 2 * time.Second
	_ = s.client.Quit()
	s.cut()
}

// connect makes a session. A token that is refused may have been withdrawn
// before its time: another one is tried once (E17).
func (m *Mailer) connect(ctx context.Context) (*session, *holdfast.Failure) {
	s, token, f := m.dial(ctx, "")
	if f != nil && token != "" && strings.HasPrefix(f.Code, "535") {
		s, _, f = m.dial(ctx, token)
	}
	return s, f
}

func (m *Mailer) dial(ctx context.Context, refused string) (s *session, token string, f *holdfast.Failure) {
	set := &m.settings
	dialing, cancel := context.WithTimeout(ctx, set.timeouts.greeting)
	conn, err := m.dialer(dialing, "tcp", set.address())
	cancel()
	if err != nil {
		f := unconnected(ctx, connecting, err, &scrubber{})
		if f.Code == exchange.NoHost {
			f = m.turnedAway(f)
		}
		return nil, "", f
	}
	s = &session{server: set.address(), wire: &wire{Conn: conn}}
	if ip := conn.RemoteAddr(); ip != nil && ip.String() != s.server {
		s.server = fmt.Sprintf("%s (%s)", s.server, ip)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if f = m.enter(ctx, s); f == nil {
		token, f = m.authenticate(ctx, s, refused)
	}
	if f == nil && !stop() {
		f = unconnected(ctx, connecting, net.ErrClosed, &s.scrub)
	}
	if f != nil {
		_ = conn.Close()
		return nil, token, f
	}
	return s, token, nil
}

// enter waits for the greeting and makes the connection as safe as the
// settings want it.
func (m *Mailer) enter(ctx context.Context, s *session) *holdfast.Failure {
	set := &m.settings
	if set.tls == tlsImplicit {
		if f := m.encrypt(ctx, s, set.timeouts.greeting); f != nil {
			return f
		}
	}
	r, err := hear(s.wire.Conn, set.timeouts.greeting)
	switch {
	case err != nil:
		return unconnected(ctx, "greeting", err, &s.scrub)
	case r.permanent():
		return m.turnedAway(r.failure("greeting", &s.scrub, holdfast.LaneFault))
	case r.code != 220:
		return r.entry("greeting", &s.scrub)
	}
	m.strikes.Store(0)
	name := m.ehlo(s.wire.Conn)
	if set.tls == tlsStart || set.tls == tlsOpportunistic {
		if f := m.startTLS(ctx, s, name); f != nil {
			return f
		}
	}
	// The client expects to be greeted, and has been.
	s.wire.greeting.WriteString("220 again\r\n")
	s.client = smtp.NewClient(s.wire)
	s.client.CommandTimeout, s.client.SubmissionTimeout = set.timeouts.command, set.timeouts.afterDot
	if err := s.client.Hello(name); err != nil {
		if r, ok := replyOf(err); ok {
			return r.entry("EHLO", &s.scrub)
		}
		return unconnected(ctx, "EHLO", err, &s.scrub)
	}
	return nil
}

// startTLS asks for encryption. A server that does not offer it gets nothing
// more, unless the settings say opportunistic; one whose handshake fails, never.
func (m *Mailer) startTLS(ctx context.Context, s *session, name string) *holdfast.Failure {
	within := m.settings.timeouts.command
	r, err := say(s.wire.Conn, within, "EHLO "+name)
	switch {
	case err != nil:
		return unconnected(ctx, "EHLO", err, &s.scrub)
	case r.code == 500 || r.code == 502: // it knows HELO only
	case r.code != 250:
		return r.entry("EHLO", &s.scrub)
	}
	offered := false
	for extension := range strings.SplitSeq(r.text, "\n") {
		offered = offered || strings.EqualFold(strings.TrimSpace(extension), "STARTTLS")
	}
	if !offered {
		if m.settings.tls == tlsOpportunistic {
			return nil
		}
		return hold("starttls_missing", "STARTTLS: the server does not offer it, or somebody on the way hides that; nothing was sent")
	}
	r, err = say(s.wire.Conn, within, "STARTTLS")
	switch {
	case err != nil:
		return unconnected(ctx, "STARTTLS", err, &s.scrub)
	case r.code != 220:
		return r.entry("STARTTLS", &s.scrub)
	}
	return m.encrypt(ctx, s, within)
}

func (m *Mailer) encrypt(ctx context.Context, s *session, within time.Duration) *holdfast.Failure {
	conn := tls.Client(s.wire.Conn, m.settings.conf)
	handshake, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := s.wire.SetDeadline(time.Now().Add(within)); err != nil {
		return unconnected(ctx, "TLS", err, &s.scrub)
	}
	if err := conn.HandshakeContext(handshake); err != nil {
		return unconnected(ctx, "TLS", err, &s.scrub)
	}
	state := conn.ConnectionState()
	s.wire.Conn, s.tls = conn, shown(&state)
	return nil
}

// turnedAway counts what may be a moment's confusion, of a name server or of a
// mail server that starts; the third time in a row it is a fault.
func (m *Mailer) turnedAway(f *holdfast.Failure) *holdfast.Failure {
	f.Outcome = holdfast.Unreachable
	if m.strikes.Add(1) >= 3 {
		f.Outcome = holdfast.LaneFault
	}
	return f
}

// ehlo is the name that we give: the settings', the machine's if it means
// something to others, else our address.
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

// session takes a connection that works, or makes one. Whoever has one gives it back.
func (m *Mailer) session(ctx context.Context) (*session, *holdfast.Failure) {
	if err := m.pool.enter(ctx); err != nil {
		f := &holdfast.Failure{Outcome: holdfast.NotStarted, Code: exchange.Canceled, Err: errors.New("stopped before a connection was free")}
		if !errors.Is(ctx.Err(), context.Canceled) {
			f.Outcome, f.Code = holdfast.Unreachable, "no_connection"
		}
		return nil, f
	}
	for s := m.pool.take(); s != nil; s = m.pool.take() {
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

// restless is how long a connection is trusted without a question.
const restless = 5 * time.Second

// alive asks a connection that has rested whether it is still there (E29).
func (s *session) alive(ctx context.Context, within time.Duration) bool {
	if time.Since(s.since) <= restless {
		return true
	}
	stop := context.AfterFunc(ctx, s.cut)
	defer stop()
	s.client.CommandTimeout = min(within, 10*time.Second)
	err := s.client.Noop()
	s.client.CommandTimeout = within
	return err == nil
}

// giveBack ends the use of a session; one that is not sound is closed.
func (m *Mailer) giveBack(s *session, sound bool) {
	defer m.pool.leave()
	switch {
	case !sound:
		s.cut()
	case s.mails >= m.settings.perConnection || !m.pool.put(s):
		s.quit()
	}
}
