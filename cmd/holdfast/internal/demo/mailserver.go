package demo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"sync"
	"time"
)

// The recipients on central's lists. The last address does not exist.
const (
	jane   = "jane@plant.example"
	john   = "john@plant.example"
	nobody = "nobody@plant.example"
)

// mailServer takes mails and books each recipient. It speaks as much SMTP (RFC 5321) as a client
// without extensions needs.
type mailServer struct {
	book     *ledger
	listener net.Listener

	mu    sync.Mutex
	mood  mood
	asked int // mails since the mood began
	conns map[net.Conn]struct{}
	all   sync.WaitGroup
}

// idle is how long the server waits for a client.
const idle = time.Minute

func newMailServer(ctx context.Context, book *ledger) (*mailServer, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for mail: %w", err)
	}
	s := &mailServer{book: book, listener: l, conns: map[net.Conn]struct{}{}}
	s.all.Go(s.serve)
	return s, nil
}

func (s *mailServer) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// be changes the mood. A failing server ends all connections.
func (s *mailServer) be(m mood) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mood, s.asked = m, 0
	if m == failing {
		s.cut()
	}
}

func (s *mailServer) cut() {
	for c := range s.conns {
		_ = c.Close()
	}
}

func (s *mailServer) close() error {
	err := s.listener.Close()
	s.mu.Lock()
	s.cut()
	s.mu.Unlock()
	s.all.Wait()
	return err
}

func (s *mailServer) serve() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.all.Go(func() {
			(&smtpSession{server: s, conn: c, r: textproto.NewReader(bufio.NewReader(c))}).run()
			_ = c.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

func (s *mailServer) away() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mood == failing
}

// forgets reports whether the answer to a mail is lost. The first answer is.
func (s *mailServer) forgets() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.mood == forgetful && s.asked%3 == 1
}

// smtpSession is one connection.
type smtpSession struct {
	server *mailServer
	conn   net.Conn
	r      *textproto.Reader
	to     []string
}

func (s *smtpSession) say(line string) bool {
	_, err := io.WriteString(s.conn, line+"\r\n")
	return err == nil
}

func (s *smtpSession) run() {
	if s.server.away() {
		s.say("421 plant.example is not available")
		return
	}
	for on := s.say("220 plant.example"); on; {
		_ = s.conn.SetDeadline(time.Now().Add(idle))
		line, err := s.r.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO", "HELO":
			on = s.say("250 plant.example")
		case "MAIL", "RSET":
			s.to = nil
			on = s.say("250 ok")
		case "RCPT":
			on = s.recipient(rest)
		case "DATA":
			on = s.data()
		case "NOOP":
			on = s.say("250 ok")
		case "QUIT":
			s.say("221 bye")
			return
		default:
			on = s.say("502 not here")
		}
	}
}

func (s *smtpSession) recipient(line string) bool {
	_, address, _ := strings.Cut(line, "<")
	address, _, _ = strings.Cut(address, ">")
	if address != jane && address != john {
		return s.say("550 5.1.1 no such user: " + address)
	}
	s.to = append(s.to, address)
	return s.say("250 ok")
}

func (s *smtpSession) data() bool {
	if len(s.to) == 0 {
		return s.say("503 no recipients")
	}
	if !s.say("354 go on") {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(s.r.DotReader(), maxBody))
	if err != nil {
		return false
	}
	m, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return s.say("554 that is no mail")
	}
	for _, address := range s.to {
		if err := s.server.book.mail(m.Header.Get("Message-Id"), m.Header.Get("X-Notification-Id"), address); err != nil {
			return s.say("451 cannot keep it")
		}
	}
	s.to = nil
	return !s.server.forgets() && s.say("250 taken")
}
