package smtp_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/adapter/email/smtp"
)

// Bounds of the tests, which are in virtual time where they are reached.
var timeouts = smtp.Timeouts{Command: time.Minute, Piece: 2 * time.Minute, Answer: 10 * time.Minute}

// peer plays a server. It greets, and answers each line by the first entry of
// its script whose beginning the line has; "." is the end of a mail. What it says
// is written as it stands, in one piece.
type peer struct {
	greeting string
	script   []string // "EHLO → 250 x\r\n"

	mu     sync.Mutex
	lines  []string
	mails  []string
	writes int // of the client
}

// counting notes how often the client writes.
type counting struct {
	net.Conn
	p *peer
}

func (c counting) Write(b []byte) (int, error) {
	c.p.mu.Lock()
	c.p.writes++
	c.p.mu.Unlock()
	return c.Conn.Write(b)
}

// dial returns a client of the peer; both end with the function that is returned.
func (p *peer) dial() (c *smtp.Client, end func()) {
	theirs, ours := net.Pipe()
	var ended sync.WaitGroup
	ended.Go(func() { p.serve(theirs) })
	c = smtp.New(counting{ours, p}, timeouts)
	return c, func() {
		_ = c.Close()
		_ = theirs.Close()
		ended.Wait()
	}
}

func (p *peer) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	said := make(chan string, 1000) // a pipe has no room for what is not read yet; a network has
	defer close(said)
	go func() {
		for text := range said {
			_, _ = io.WriteString(conn, text)
		}
	}()
	said <- cmp.Or(p.greeting, "220 mail.test\r\n")
	var mail strings.Builder
	inMail := false
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if inMail && line != ".\r\n" {
			_, _ = mail.WriteString(line)
			continue
		}
		line = strings.TrimSuffix(line, "\r\n")
		p.mu.Lock()
		if p.lines = append(p.lines, line); inMail {
			p.mails = append(p.mails, mail.String())
			mail.Reset()
		}
		p.mu.Unlock()
		answer := p.answer(line)
		inMail = !inMail && line == "DATA" && strings.HasPrefix(answer, "354")
		said <- answer
	}
}

func (p *peer) answer(line string) string {
	for _, s := range p.script {
		if prefix, answer, _ := strings.Cut(s, " → "); strings.HasPrefix(line, prefix) {
			return answer
		}
	}
	if line == "DATA" {
		return "354 go on\r\n"
	}
	return "250 2.0.0 fine\r\n"
}

// got are the lines that came, with bars between.
func (p *peer) got() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "|")
}

// begin greets a peer.
func begin(t *testing.T, p *peer) (c *smtp.Client, end func()) {
	t.Helper()
	c, end = p.dial()
	greeted, err := c.Greeting(time.Minute)
	if err != nil || greeted.Code != 220 {
		t.Fatalf("greeting: %v %v", greeted, err)
	}
	if r, err := c.Hello("central.test"); err != nil || !r.OK() {
		t.Fatalf("EHLO: %v %v", r, err)
	}
	return c, end
}

func pipelining() string { return "EHLO → 250-mail.test\r\n250 PIPELINING\r\n" }

func yes() bool { return true }

// brief is what became of an offer.
func brief(a smtp.Answers, err error) string {
	s := fmt.Sprintf("%v;", a.Mail)
	for _, r := range a.To {
		s += " " + r.String()
	}
	s += fmt.Sprintf("; %v", a.Data)
	if err != nil {
		s += "; " + err.Error()
	}
	return s
}
