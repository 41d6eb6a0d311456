package smtp_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/adapter/email/smtp"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// F1-65: keywords are what they are in small letters, too.
func TestKeywordsHaveNoCase(t *testing.T) {
	t.Parallel()
	p := &peer{script: []string{"EHLO → 250-mail.test\r\n250-auth plain LOGIN\r\n250-Size  1000 \r\n250 smtpUTF8\r\n"}}
	c, end := begin(t, p)
	defer end()
	for keyword, want := range map[string]string{"AUTH": "plain LOGIN", "SIZE": "1000", "SMTPUTF8": ""} {
		if got, ok := c.Offers(keyword); !ok || got != want {
			t.Errorf("%s: got %q, %t", keyword, got, ok)
		}
	}
	if _, ok := c.Offers("MAIL.TEST"); ok {
		t.Error("the server's name is taken for an extension")
	}
}

// F1-66: what we say first stands in the command only where that stays within
// 512 bytes, its end included.
func TestLongTokensHaveALineOfTheirOwn(t *testing.T) {
	t.Parallel()
	const room = 512 - len("AUTH XOAUTH2 ") - len("\r\n")
	for _, c := range []struct {
		size int
		want string
	}{
		{0, "AUTH XOAUTH2 ="},
		{room / 4 * 3, "AUTH XOAUTH2 *"},
		{room/4*3 + 1, "AUTH XOAUTH2|*"},
		{1900, "AUTH XOAUTH2|*"},
	} {
		first := bytes.Repeat([]byte{'t'}, c.size)
		p := &peer{script: []string{"AUTH XOAUTH2 → 235 in\r\n", base64.StdEncoding.EncodeToString(first) + " → 235 in\r\n"}}
		if strings.Contains(c.want, "|") {
			p.script[0] = "AUTH XOAUTH2 → 334 \r\n"
		}
		client, end := begin(t, p)
		r, err := client.Auth("XOAUTH2", first, func([]byte) ([]byte, error) { return nil, errors.New("asked") })
		end()
		want := "EHLO central.test|" + strings.Replace(c.want, "*", base64.StdEncoding.EncodeToString(first), 1)
		if got := p.got(); err != nil || r.Code != 235 || got != want {
			t.Errorf("%d bytes: got %v, %v, %s", c.size, r, err, got)
		}
		for line := range strings.SplitSeq(p.got(), "|") {
			if strings.HasPrefix(line, "AUTH") && len(line) > 510 {
				t.Errorf("a command of %d bytes", len(line)+2)
			}
		}
	}
}

// F1-62: an answer to AUTH that asks for a mail is out of turn: no secret is sent after it.
func TestAnExchangeIsNoMail(t *testing.T) {
	t.Parallel()
	p := &peer{script: []string{"AUTH → 354 go on\r\n"}}
	c, end := begin(t, p)
	defer end()
	_, err := c.Auth("LOGIN", nil, func([]byte) ([]byte, error) { return []byte("secret"), nil })
	if !errors.Is(err, smtp.ErrTurn) || !strings.HasSuffix(p.got(), "|AUTH LOGIN") {
		t.Errorf("got %v, %s", err, p.got())
	}
	if _, err := c.Noop(time.Minute); err == nil {
		t.Error("the connection can be used")
	}
}

// An exchange that cannot go on is called off.
func TestAnExchangeIsCalledOff(t *testing.T) {
	t.Parallel()
	p := &peer{script: []string{"AUTH → 334 cXVlc3Rpb24=\r\n", "* → 501 off\r\n"}}
	c, end := begin(t, p)
	defer end()
	asked := ""
	fault := errors.New("no answer")
	_, err := c.Auth("PLAIN", []byte("x"), func(question []byte) ([]byte, error) {
		asked = string(question)
		return nil, fault
	})
	if !errors.Is(err, fault) || asked != "question" || !strings.HasSuffix(p.got(), "|*") {
		t.Errorf("asked %q: %v, %s", asked, err, p.got())
	}
}

// F1-60: EHLO is said once for each layer, never between two mails; RSET is.
func TestHelloIsSaidOnce(t *testing.T) {
	t.Parallel()
	p := &peer{script: []string{"RCPT TO:<gone → 550 5.1.1 no\r\n"}}
	c, end := begin(t, p)
	defer end()
	for range 2 {
		if a, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"gone@x.test"}}); err != nil || a.To[0].Code != 550 || a.Data.Code != 0 {
			t.Error(brief(a, err))
		}
		if err := c.Clear(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Hello("central.test"); err == nil {
		t.Error("EHLO was said again")
	}
	if got, want := p.got(), "EHLO central.test"+strings.Repeat("|MAIL FROM:<f@x.test>|RCPT TO:<gone@x.test>|RSET", 2); got != want {
		t.Errorf("got %s", got)
	}
}

// A server that does not want to know us says why; of one that falls
// silent in the middle nothing is believed.
func TestHelloThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script []string
		want   string // of the reply
		fails  bool
	}{
		"refused":       {[]string{"EHLO → 550 5.7.1 not you\r\n"}, "550 5.7.1", false},
		"refused twice": {[]string{"EHLO → 502 what?\r\n", "HELO → 554 not you\r\n"}, "554", false},
		"silent":        {[]string{"EHLO → 250-mail.test\r\n250-SIZE\r\n"}, "0", true},
	} {
		racetest.Bubble(t, func(t *testing.T) {
			p := &peer{script: c.script}
			client, end := p.dial()
			defer end()
			if r, err := client.Greeting(time.Minute); err != nil || r.Code != 220 {
				t.Fatalf("%s: greeting: %v, %v", name, r, err)
			}
			r, err := client.Hello("central.test")
			_, size := client.Offers("SIZE")
			if got := r.String(); got != c.want || c.fails != (err != nil) || size {
				t.Errorf("%s: got %s, %v, SIZE offered: %v; want %s, an error: %v", name, got, err, size, c.want, c.fails)
			}
		})
	}
}

// A server that knows HELO only gets that.
func TestHelloOfOldServers(t *testing.T) {
	t.Parallel()
	p := &peer{script: []string{"EHLO → 502 what?\r\n", "HELO → 250-PIPELINING\r\n250 SIZE\r\n"}}
	c, end := begin(t, p)
	defer end()
	if _, ok := c.Offers("SIZE"); ok || p.got() != "EHLO central.test|HELO central.test" {
		t.Errorf("got %s", p.got())
	}
}

// RFC 2920: where it is offered, all of an envelope leaves in one piece; else one
// command waits for the reply to the one before.
func TestPipelining(t *testing.T) {
	t.Parallel()
	for script, writes := range map[string]int{pipelining(): 2, "EHLO → 250 mail.test\r\n": 5} {
		p := &peer{script: []string{script, "RCPT TO:<b → 550 5.1.1 no\r\n"}}
		c, end := begin(t, p)
		before := p.writes
		a, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"a@x.test", "b@x.test"}, Size: 10})
		if got := brief(a, err); got != "250 2.0.0; 250 2.0.0 550 5.1.1; 354" {
			t.Error(got)
		}
		if r, err := c.Data([]byte("A: b\r\n\r\nx\r\n"), yes); err != nil || r.Code != 250 {
			t.Errorf("%v %v", r, err)
		}
		end()
		if got := p.writes - before; got != writes {
			t.Errorf("%d writes, want %d", got, writes)
		}
		if len(p.mails) != 1 || p.mails[0] != "A: b\r\n\r\nx\r\n" {
			t.Errorf("got %q", p.mails)
		}
	}
}

// RFC 2920, 3.1: groups are bounded; E5: recipients beyond a server's limit are
// not named one by one, and those whom it has taken get their mail.
func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	var to []string
	for i := range 300 {
		to = append(to, fmt.Sprintf("somebody.%03d@example.test", i))
	}
	p := &peer{script: []string{pipelining(), "RCPT TO:<somebody.2 → 452 4.5.3 too many\r\n"}}
	c, end := begin(t, p)
	defer end()
	a, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: to})
	if err != nil || a.Data.Code != 354 || len(a.To) < 201 || len(a.To) > 299 {
		t.Errorf("%d replies: %s", len(a.To), brief(a, err))
	}
	for i, r := range a.To {
		if r.OK() != (i < 200) {
			t.Errorf("recipient %d: %v", i, r)
		}
	}
	p = &peer{script: []string{"RCPT TO:<somebody.2 → 452 4.5.3 too many\r\n"}}
	one, end := begin(t, p)
	defer end()
	if a, err := one.Offer(&smtp.Envelope{From: "f@x.test", To: to}); err != nil || a.Data.Code != 354 || len(a.To) != 201 {
		t.Errorf("%d replies: %s", len(a.To), brief(a, err))
	}
}

// E4: a server that has taken nobody and wants a mail all the same gets the end
// of one, and goes on.
func TestAMailForNobody(t *testing.T) {
	t.Parallel()
	p := &peer{script: []string{pipelining(), "RCPT TO:<gone → 550 5.1.1 no\r\n", ". → 554 5.5.1 no valid recipients\r\n"}}
	c, end := begin(t, p)
	defer end()
	if a, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"gone@x.test"}}); err != nil || a.Data.Code != 354 {
		t.Error(brief(a, err))
	}
	if err := c.Clear(); err != nil {
		t.Error(err)
	}
	if a, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"a@x.test"}}); err != nil || a.Data.Code != 354 {
		t.Error(brief(a, err))
	}
	if len(p.mails) != 1 || p.mails[0] != "" {
		t.Errorf("got %q", p.mails)
	}
}

// Parameters are sent where they are offered, or needed.
func TestParametersOfMail(t *testing.T) {
	t.Parallel()
	for extensions, want := range map[string]string{
		"":                    "MAIL FROM:<f@x.test> SMTPUTF8",
		"250-8BITMIME\r\n":    "MAIL FROM:<f@x.test> BODY=8BITMIME SMTPUTF8",
		"250-size 100000\r\n": "MAIL FROM:<f@x.test> SIZE=10 SMTPUTF8",
		"250-SIZE\r\n":        "MAIL FROM:<f@x.test> SIZE=10 SMTPUTF8",
	} {
		p := &peer{script: []string{"EHLO → 250-mail.test\r\n" + extensions + "250 HELP\r\n"}}
		c, end := begin(t, p)
		_, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"a@x.test"}, Size: 10, UTF8: true})
		end()
		if err != nil || p.lines[1] != want {
			t.Errorf("got %q, %v; want %q", p.lines[1], err, want)
		}
	}
}

// What would be two commands is none.
func TestLineEndsInAddresses(t *testing.T) {
	t.Parallel()
	p := &peer{}
	c, end := begin(t, p)
	defer end()
	for _, e := range []*smtp.Envelope{
		{From: "f@x.test>\r\nRCPT TO:<e@evil.test", To: []string{"a@x.test"}}, {From: "f@x.test", To: []string{"a@x.test", "a\n@x.test"}},
	} {
		if _, err := c.Offer(e); err == nil {
			t.Error("it was sent")
		}
	}
	if p.got() != "EHLO central.test" {
		t.Errorf("got %s", p.got())
	}
}

// E40: a mail arrives as it was, but for its line ends; wherever it is cut into
// pieces.
func TestMailsArriveWhole(t *testing.T) {
	t.Parallel()
	const piece = 16 << 10
	mails := []string{
		"", ".", "..", ".\r\n", "a", "a\r\n", "a\r", "a\n", "a\n.b\n..c\n", "\r\r\n\n\r", "a\r.b", strings.Repeat("a line\r\n", 10_000), strings.Repeat(".\r\n", 20_000),
	}
	for shift := range 4 { // line ends and dots where a piece ends
		mails = append(mails, strings.Repeat("x", piece-shift)+"\r\n.dot\r\nend", strings.Repeat("x", piece-shift)+"\n.dot\nend", strings.Repeat("x", piece-shift)+"\r.dot\rend")
	}
	for _, mail := range mails {
		p := &peer{}
		c, end := begin(t, p)
		if a, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"a@x.test"}}); err != nil || a.Data.Code != 354 {
			t.Error(brief(a, err))
		}
		if r, err := c.Data([]byte(mail), yes); err != nil || r.Code != 250 {
			t.Errorf("%v %v", r, err)
		}
		end()
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(mail)
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		got, err := io.ReadAll(textproto.NewReader(bufio.NewReader(strings.NewReader(p.mails[0] + ".\r\n"))).DotReader())
		if err != nil || string(got) != want {
			t.Errorf("%.20q of %d bytes: got %.40q of %d bytes, %v", mail, len(mail), got, len(got), err)
		}
		if strings.Contains(strings.ReplaceAll(p.mails[0], "\r\n", ""), "\r") || strings.Contains(strings.ReplaceAll(p.mails[0], "\r\n", ""), "\n") {
			t.Errorf("%.20q: a line end by halves", mail)
		}
	}
}

// A mail is complete with its last byte, and not before: who is told to stop
// leaves it incomplete, and the connection is of no use any more.
func TestAMailThatStaysIncomplete(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 100_000} {
		p := &peer{}
		c, end := begin(t, p)
		if a, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"a@x.test"}}); err != nil || a.Data.Code != 354 {
			t.Error(brief(a, err))
		}
		if _, err := c.Data(bytes.Repeat([]byte("x"), size), func() bool { return false }); !errors.Is(err, smtp.ErrIncomplete) {
			t.Errorf("got %v", err)
		}
		if c.Clear() == nil {
			t.Error("the connection can be used")
		}
		if end(); len(p.mails) != 0 {
			t.Errorf("got %d mails", len(p.mails))
		}
		if _, err := c.Data(nil, yes); !errors.Is(err, smtp.ErrIncomplete) {
			t.Errorf("a mail that nobody waits for: %v", err)
		}
	}
}
