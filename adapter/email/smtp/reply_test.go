package smtp_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/adapter/email/smtp"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// F1-61: the forms that a reply may have, and those that it may not.
func TestRepliesHaveManyForms(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10_000)
	for name, c := range map[string]struct {
		said string
		want string // code, enhanced code and text, or an error
	}{
		"usual":               {"250 2.1.0 Ok\r\n", `250 "2.1.0" "Ok"`},
		"a code alone":        {"250\r\n", `250 "" ""`},
		"a code and a space":  {"250 \r\n", `250 "" ""`},
		"no carriage return":  {"250 Ok\n", `250 "" "Ok"`},
		"lines":               {"250-a\r\n250-\r\n250 b\r\n", `250 "" "a\n\nb"`},
		"the last a code":     {"250-a\r\n250\r\n", `250 "" "a\n"`},
		"codes in each line":  {"550-5.1.1 no\r\n550 5.1.1 body\r\n", `550 "5.1.1" "no\nbody"`},
		"an enhanced alone":   {"550 5.1.1\r\n", `550 "5.1.1" ""`},
		"almost enhanced":     {"550 5.1 no\r\n", `550 "" "5.1 no"`},
		"an address":          {"550 5.1.1.1 no\r\n", `550 "" "5.1.1.1 no"`},
		"the last code":       {"250-a\r\n550 b\r\n", `550 "" "a\nb"`},
		"a tab":               {"250\tOk\r\n", `250 "" "Ok"`},
		"a long line":         {"250 " + long + "\r\n", fmt.Sprintf(`250 "" %q`, long[:4092])},
		"long lines":          {"250-" + long + "\r\n250 b\r\n", fmt.Sprintf(`250 "" %q`, long[:4092]+"\nb")},
		"lines without end":   {strings.Repeat("250-a\r\n", 1001), "the answer has no end"},
		"a line without end":  {"250 " + strings.Repeat(long, 110) + "\r\n", "the answer has no end"},
		"of another protocol": {"* OK IMAP4rev1\r\n", `this is no reply: "* OK IMAP4rev1"`},
		"no code":             {"hello\r\n", `this is no reply: "hello"`},
		"nothing":             {"\r\n", `this is no reply: ""`},
		"a code too long":     {"2500 Ok\r\n", `this is no reply: "2500 Ok"`},
		"a code of no class":  {"150 Ok\r\n", `this is no reply: "150 Ok"`},
		"a half":              {"25\r\n", `this is no reply: "25"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &peer{greeting: c.said}
			client, end := p.dial()
			defer end()
			r, err := client.Greeting(time.Minute)
			got := fmt.Sprintf("%d %q %q", r.Code, r.Enhanced, r.Text)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// F1-61: a whole session of a server that says codes only, and one that has
// much to say after the dot.
func TestServersOfFewWordsAndOfMany(t *testing.T) {
	t.Parallel()
	for name, script := range map[string][]string{
		"codes": {"EHLO → 250\r\n", "AUTH → 334\r\n", "dQ== → 334\r\n", "cA== → 235\r\n", "MAIL → 250\r\n", "RCPT TO:<b → 550\r\n", "RCPT → 250\r\n", "DATA → 354\r\n", ". → 250\r\n"},
		"words": {"AUTH → 334 VXNlcm5hbWU6\r\n", "dQ== → 334 password please\r\n", ". → 250 " + strings.Repeat("queued ", 2000) + "\r\n"},
	} {
		p := &peer{greeting: "220\r\n", script: script}
		c, end := begin(t, p)
		answers := [][]byte{[]byte("u"), []byte("p")}
		r, err := c.Auth("LOGIN", nil, func([]byte) ([]byte, error) {
			next := answers[0]
			answers = answers[1:]
			return next, nil
		})
		if err != nil || !r.OK() {
			t.Errorf("%s: AUTH: %v %v", name, r, err)
		}
		a, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"a@x.test", "b@x.test"}})
		if err != nil || !a.To[0].OK() || a.To[1].OK() != (name == "words") || a.Data.Code != 354 {
			t.Errorf("%s: %s", name, brief(a, err))
		}
		if r, err := c.Data([]byte("Subject: x\r\n\r\nx\r\n"), yes); err != nil || r.Code != 250 {
			t.Errorf("%s: after the dot: %v %v", name, r, err)
		}
		if r, err := c.Noop(time.Minute); err != nil || !r.OK() {
			t.Errorf("%s: the connection is of no use: %v %v", name, r, err)
		}
		end()
		if len(p.mails) != 1 {
			t.Errorf("%s: %d mails", name, len(p.mails))
		}
	}
}

// F1-62: whoever speaks out of turn is not listened to any more; no reply is
// taken for that of another command.
func TestServersThatSpeakOutOfTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pipelined bool
		script    []string
		want      string // of Offer, then of Clear
	}{
		"two replies to MAIL":                {false, []string{"MAIL → 250 a\r\n250 b\r\n"}, "250;; 0; the server speaks out of turn"},
		"two replies to a recipient":         {false, []string{"RCPT TO:<a → 250 a\r\n550 b\r\n"}, "250 2.0.0; 250; 0; the server speaks out of turn"},
		"two replies to the last":            {false, []string{"RCPT TO:<c → 250 a\r\n550 b\r\n"}, "250 2.0.0; 250 2.0.0 250 2.0.0 250; 0; the server speaks out of turn"},
		"DATA is fine":                       {false, []string{"DATA → 250 fine\r\n"}, "250 2.0.0; 250 2.0.0 250 2.0.0 250 2.0.0; 250; the server speaks out of turn"},
		"a recipient goes on":                {false, []string{"RCPT → 354 go on\r\n"}, "250 2.0.0; 354; 0; the server speaks out of turn"},
		"pipelined, all taken":               {true, []string{"RCPT TO:<a → 250 a\r\n550 b\r\n"}, "250 2.0.0; 250 550 250 2.0.0; 250 2.0.0; the server speaks out of turn"},
		"pipelined, a refusal at the end":    {true, []string{"RCPT TO:<a → 250 a\r\n250 b\r\n", "RCPT TO:<c → 550 c\r\n"}, "250 2.0.0; 250 250 250 2.0.0; 550, then the server speaks out of turn"},
		"pipelined, all refused and shifted": {true, []string{"RCPT TO:<a → 550 a\r\n550 b\r\n", "RCPT → 550 c\r\n", "DATA → 554 none\r\n"}, "250 2.0.0; 550 550 550; 550, then the server speaks out of turn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &peer{script: c.script}
			if c.pipelined {
				p.script = append(p.script, pipelining())
			}
			client, end := begin(t, p)
			defer end()
			a, err := client.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"a@x.test", "b@x.test", "c@x.test"}})
			got := brief(a, err)
			if err == nil {
				err = client.Clear()
				got += fmt.Sprintf(", then %v", err)
			}
			if got != c.want || !errors.Is(err, smtp.ErrTurn) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if _, err := client.Noop(time.Minute); err == nil {
				t.Error("the connection can be used")
			}
		})
	}
}

// F1-62: a line that a time-out cuts is no reply.
func TestALineThatIsCutIsNone(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{"a line": "550 no su", "a code": "550", "a continuation": "250-fine\r\n"} {
		racetest.Bubble(t, func(t *testing.T) {
			p := &peer{script: []string{"RCPT → " + said}}
			c, end := begin(t, p)
			defer end()
			a, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"a@x.test"}})
			if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || len(a.To) != 0 {
				t.Errorf("%s: %s", name, brief(a, err))
			}
		})
	}
}

// 421 may come at any time, and ends the connection.
func TestAfter421NothingIsSaid(t *testing.T) {
	t.Parallel()
	for _, extensions := range []string{"EHLO → 250 mail.test\r\n", pipelining()} {
		p := &peer{script: []string{extensions, "RCPT TO:<b → 421 4.7.0 too many errors\r\n"}}
		c, end := begin(t, p)
		a, err := c.Offer(&smtp.Envelope{From: "f@x.test", To: []string{"a@x.test", "b@x.test", "c@x.test"}})
		if got := brief(a, err); got != "250 2.0.0; 250 2.0.0 421 4.7.0; 0" {
			t.Error(got)
		}
		if _, err := c.Quit(time.Second); err == nil || c.Clear() == nil {
			t.Error("it can be used")
		}
		if end(); strings.Contains(p.got(), "QUIT") || strings.Contains(p.got(), "RSET") {
			t.Errorf("it was spoken to again: %s", p.got())
		}
	}
}
