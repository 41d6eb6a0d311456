package email_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast/adapter/email"
	"github.com/holdfast-mq/holdfast/notify"
)

const password = "pa55-w0rd-of-ours"

// What a server's answer may do besides to say something.
const (
	hangUp = "\x00close" // end the connection
	silent = "\x00silent"
)

// server plays an SMTP server by a script. It is used over pipes, inside and
// outside of virtual time, and over TCP.
type server struct {
	greeting   string   // empty: 220
	extensions []string // of EHLO
	tls        *tls.Config
	implicit   bool
	// answer is what it says to a line of a connection (from 1), instead of what
	// a server says that takes everything; empty: the latter. "." is the end of data.
	answer func(connection int, line string) string

	mu     sync.Mutex
	dials  int
	open   int // connections that the client has
	peak   int
	lines  []string // that it got, all connections
	mails  []string
	raw    bytes.Buffer // what came over the network, before it is decrypted
	ending sync.WaitGroup
}

// dial is the client's way to it.
func (s *server) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	if s.tls != nil { // both ends of a handshake write at once, for which a pipe has no room
		var err error
		if ours, theirs, err = overTCP(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.dials++
	s.open++
	s.peak = max(s.peak, s.open)
	n := s.dials
	s.mu.Unlock()
	s.ending.Go(func() { s.serve(n, ours) })
	return &counted{Conn: theirs, s: s}, nil
}

// counted says when the client has closed it.
type counted struct {
	net.Conn
	s    *server
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.s.mu.Lock()
		c.s.open--
		c.s.mu.Unlock()
	})
	return c.Conn.Close()
}

// overTCP returns both ends of a connection over the loopback interface.
func overTCP() (ours, theirs net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if theirs, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	ours, err = l.Accept()
	return ours, theirs, err
}

// tapped records what it reads.
type tapped struct {
	net.Conn
	s *server
}

func (c tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.s.mu.Lock()
	c.s.raw.Write(p[:n])
	c.s.mu.Unlock()
	return n, err
}

func (s *server) serve(n int, plain net.Conn) {
	defer plain.Close()
	conn := net.Conn(tapped{plain, s})
	if s.implicit {
		conn = tls.Server(conn, s.tls)
	}
	r := bufio.NewReader(conn)
	say := func(text string) bool {
		switch text {
		case hangUp:
			return false
		case silent:
			_, _ = io.Copy(io.Discard, r)
			return false
		}
		_, err := io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n")+"\r\n")
		return err == nil
	}
	greeting := s.greeting
	if greeting == "" {
		greeting = "220 mail.test ready"
	}
	if !say(greeting) {
		return
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		s.note(line)
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		text := ""
		if s.answer != nil {
			text = s.answer(n, line)
		}
		if verb == "DATA" && (text == "" || strings.HasPrefix(text, "3")) {
			if !say("354 go on") {
				return
			}
			mail, ok := readMail(r)
			if !ok {
				return
			}
			s.mu.Lock()
			s.mails = append(s.mails, mail)
			s.mu.Unlock()
			text = ""
			if s.answer != nil {
				text = s.answer(n, ".")
			}
			if text == "" {
				text = "250 2.0.0 queued as Q-1"
			}
		}
		if text == "" {
			text = s.usual(verb)
		}
		if !say(text) {
			return
		}
		if verb == "STARTTLS" && strings.HasPrefix(text, "220") {
			conn = tls.Server(conn, s.tls)
			r = bufio.NewReader(conn)
		}
		if verb == "QUIT" || strings.HasPrefix(text, "421") {
			return
		}
	}
}

func (s *server) usual(verb string) string {
	switch verb {
	case "EHLO":
		return "250-mail.test\n" + strings.Join(append(prefixed(s.extensions), "250 ENHANCEDSTATUSCODES"), "\n")
	case "STARTTLS":
		return "220 2.0.0 begin"
	case "AUTH":
		return "235 2.7.0 welcome"
	case "QUIT":
		return "221 2.0.0 bye"
	}
	return "250 2.0.0 fine"
}

func prefixed(extensions []string) (lines []string) {
	for _, e := range extensions {
		lines = append(lines, "250-"+e)
	}
	return lines
}

func readMail(r *bufio.Reader) (string, bool) {
	var mail strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", false
		}
		if line == ".\r\n" {
			return mail.String(), true
		}
		mail.WriteString(strings.TrimPrefix(line, "."))
	}
}

func (s *server) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

// got are the lines that begin so.
func (s *server) got(prefix string) (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		if strings.HasPrefix(l, prefix) {
			lines = append(lines, l)
		}
	}
	return lines
}

func (s *server) seen() (mails []string, raw string, dials int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(mails, s.mails...), s.raw.String(), s.dials
}

// listen serves it over TCP of the loopback interface.
func (s *server) listen(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.ending.Go(func() {
		for n := 1; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.ending.Go(func() { s.serve(n, conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.ending.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

type object = map[string]any

// with are settings that work, changed.
func with(changes object) object {
	s := object{"host": "127.0.0.1", "port": 25, "tls": "none", "ehlo": "central.test", "from": "Plant 7 <alarm@plant.test>"}
	maps.Copy(s, changes)
	return s
}

func named(name string) object { return object{"secret": name} }

// open makes a Mailer that dials the server.
func open(t *testing.T, settings object, s *server) *email.Mailer {
	t.Helper()
	return openWith(t, settings, s, secrets(object{"smtp": password + "\n"}), nil)
}

func openWith(t *testing.T, settings object, s *server, secret func(notify.SecretUse) ([]byte, error), log *slog.Logger) *email.Mailer {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	o := email.Options{Secret: secret, Logger: log}
	if s != nil {
		o.DialContext = s.dial
	}
	m, err := email.New(raw, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func secrets(all object) func(notify.SecretUse) ([]byte, error) {
	return func(use notify.SecretUse) ([]byte, error) {
		text, ok := all[use.Secret].(string)
		if !ok {
			return nil, fmt.Errorf("there is no file %s", use.Secret)
		}
		return []byte(text), nil
	}
}

func example() *notify.Notification {
	return &notify.Notification{
		ID: "0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11", Type: "batch.failed", List: "ops", Subject: "Batch 7 failed", Body: "Line 1\nLine 2\n",
		Origin: notify.Origin{Site: "plant-7"},
	}
}

func people(addresses ...string) (to []notify.Recipient) {
	for _, a := range addresses {
		to = append(to, notify.Recipient{Channel: "mail", Address: a})
	}
	return to
}

// three are recipients a, b and c.
func three() []notify.Recipient { return people("a@x.test", "b@x.test", "c@x.test") }

// told is a report in short: the result of each recipient, then the fault.
func told(r notify.Report) string {
	var all []string
	for _, d := range r.To {
		s := map[notify.Result]string{notify.Waiting: "waiting", notify.Accepted: "accepted", notify.Deferred: "deferred", notify.Refused: "refused"}[d.Outcome]
		if d.Outcome == notify.Deferred || d.Outcome == notify.Refused {
			s += " " + d.Code
		}
		if d.Maybe {
			s += " maybe"
		}
		if d.RetryAfter > 0 {
			s += " in " + d.RetryAfter.String()
		}
		all = append(all, s)
	}
	if f := r.Fault; f != nil {
		s := f.Outcome.String() + " " + f.Code
		if f.MaybeDelivered {
			s += " maybe"
		}
		if f.RetryAfter > 0 {
			s += " in " + f.RetryAfter.String()
		}
		all = append(all, s)
	}
	return strings.Join(all, "; ")
}

// send makes one attempt, closes all, and waits for the server's end.
func send(t *testing.T, settings object, s *server, to []notify.Recipient) notify.Report {
	t.Helper()
	m := open(t, settings, s)
	r := m.Send(t.Context(), example(), to, nil)
	m.Close()
	s.ending.Wait()
	return r
}

// on answers lines that begin so.
func on(answers map[string]string) func(int, string) string {
	return func(_ int, line string) string {
		for prefix, text := range answers {
			if strings.HasPrefix(line, prefix) {
				return text
			}
		}
		return ""
	}
}

func openDial(t *testing.T, settings object, dial func(context.Context, string, string) (net.Conn, error)) *email.Mailer {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	m, err := email.New(raw, email.Options{DialContext: dial})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
