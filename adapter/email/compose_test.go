package email_test

import (
	"encoding/json"
	"io"
	"net/mail"
	"strings"
	"testing"

	gomail "github.com/emersion/go-message/mail"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	select {
	case s.got <- string(raw):
	default:
	}
	return err
}

func encode(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// read is a mail as go-message understands it.
type readMessage struct {
	header gomail.Header
	body   string
}

func parse(t *testing.T, raw string) *readMessage {
	t.Helper()
	r, err := gomail.CreateReader(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	part, err := r.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(part.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &readMessage{r.Header, strings.ReplaceAll(string(body), "\r\n", "\n")}
}

// normal is a body as it is when it arrives.
func normal(body string) string {
	body = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD").Replace(strings.ToValidUTF8(body, "\uFFFD"))
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return body
}

func bodies() map[string]string {
	return map[string]string{
		"short":             "Line 1\nLine 2\n",
		"dots":              ".\n..\n.line\nend.\n.\nRCPT TO:<evil@x.test>\n",
		"a dot at the end":  "line\n.",
		"one long line":     strings.Repeat("x", 5000),
		"long words":        strings.Repeat(strings.Repeat("y", 700)+" ", 8),
		"spaces at ends":    "a \nb\t\n  c\n",
		"from":              "From here on\n>From there\n",
		"Japanese":          strings.Repeat("設備が停止しました。", 60) + "\n",
		"some umlauts":      "Kessel überhitzt, Größe 5 µm\n",
		"all kinds of ends": "a\rb\r\nc\nd\r\re\n\n\n",
		"controls":          "a\x00b\x07c\x1bd\n",
		"no UTF-8":          "a\xff\xfeb\xc3\n",
		"like encoded":      "=3D =?utf-8?q?x?= =\n=\n",
	}
}

// compose returns the mail that a notification becomes.
func compose(t *testing.T, settings object, n *notify.Notification, to ...string) string {
	t.Helper()
	var mail string
	racetest.Bubble(t, func(t *testing.T) {
		s := &server{extensions: []string{"8BITMIME", "SMTPUTF8"}}
		m := open(t, with(settings), s)
		m.Send(t.Context(), n, people(to...), nil)
		m.Close()
		s.ending.Wait()
		mails, _, _ := s.seen()
		if len(mails) != 1 {
			t.Fatalf("%d mails", len(mails))
		}
		mail = mails[0]
	})
	return mail
}

// checkLines wants lines that each server takes, and ASCII.
func checkLines(t *testing.T, name, mail string) {
	t.Helper()
	for _, line := range strings.SplitAfter(mail, "\r\n") {
		if len(line) > 78 || strings.ContainsAny(strings.TrimSuffix(line, "\r\n"), "\r\n\x00") ||
			strings.ContainsFunc(line, func(r rune) bool { return r > 0x7e }) || line != "" && !strings.HasSuffix(line, "\r\n") {
			t.Errorf("%s: a line of %d bytes: %q", name, len(line), line)
		}
	}
}

// E40, E41: each body goes in short lines of ASCII and is read as it was.
func TestBodies(t *testing.T) {
	t.Parallel()
	for name, body := range bodies() {
		n := example()
		n.Body = body
		raw := compose(t, nil, n, "a@x.test")
		checkLines(t, name, raw)
		if got := parse(t, raw).body; got != normal(body) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// E42, E44: a subject is one field, whatever is in it, and is read as it was
// but for control characters.
func TestSubjects(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]string{
		"Batch 7 failed":          "",
		"x\r\nBcc: e@evil.test":   "x Bcc: e@evil.test",
		"x\r\n\r\nbody":           "x body",
		"a\tb\x00\x1b\u0085c":     "a b c",
		"=?utf-8?q?not_encoded?=": "",
		"two  spaces":             "",
		strings.Repeat("設備が停止しました🔥", 30):    "",
		strings.Repeat("a", 35) + "🔥🔥":      "",
		strings.Repeat("🔥", 300):            "",
		strings.Repeat("long", 500):         "",
		strings.Repeat("many words ", 200):  strings.TrimSpace(strings.Repeat("many words ", 200)),
		strings.Repeat("x", 66) + " " + "y": "",
		strings.Repeat("x", 68):             "",
		"Kessel überhitzt":                  "",
		"bad \xff byte":                     "bad \uFFFD byte",
		"":                                  "batch.failed", // people see what it is about
	} {
		n := example()
		n.Subject = subject
		if want == "" {
			want = subject
		}
		raw := compose(t, nil, n, "a@x.test")
		checkLines(t, subject, raw)
		got, err := parse(t, raw).header.Subject()
		if err != nil || got != want {
			t.Errorf("got %q, want %q: %v", got, want, err)
		}
		msg, err := mail.ReadMessage(strings.NewReader(raw))
		if err != nil || len(msg.Header["Subject"]) != 1 || len(msg.Header["Bcc"]) != 0 {
			t.Errorf("%q: %v %v", subject, msg.Header, err)
		}
		for word := range strings.FieldsSeq(msg.Header.Get("Subject")) {
			if len(word) > 75 {
				t.Errorf("a word of %d bytes", len(word))
			}
		}
	}
}

// E45: a sender's name is read as it was.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Plant 7", "Doe, Jane", `Jane "JD" Doe`, `back\slash`, "Jane (Ops)", "a@b.test", "Jürgen Groß", "設備", "dot.ted", "semi;colon:",
		"=?utf-8?q?x?=", "🔥 alarm", "O'Brien <x>", strings.Repeat("long name ", 15) + "end", strings.Repeat("ü", 90),
	} {
		from := (&mail.Address{Name: name, Address: "alarm@plant.test"}).String()
		raw := compose(t, object{"from": from, "replyTo": from}, example(), "a@x.test")
		checkLines(t, name, raw)
		h := parse(t, raw).header
		for _, field := range []string{"From", "Reply-To"} {
			list, err := h.AddressList(field)
			if err != nil || len(list) != 1 || list[0].Name != name || list[0].Address != "alarm@plant.test" {
				t.Errorf("%s of %q: got %v: %v", field, name, list, err)
			}
		}
	}
}

// E53, A5: the fields of a mail; no recipient is in it, and nothing about the
// program that wrote it.
func TestFields(t *testing.T) {
	t.Parallel()
	n := example()
	n.Origin.Site = "Werk Süd\r\nX-Evil: 1"
	raw := compose(t, object{"zone": "Asia/Kolkata", "messageIdDomain": "id.test"}, n, "a@x.test", "secret.person@y.test")
	checkLines(t, "fields", raw)
	h := parse(t, raw).header
	for field, want := range map[string]string{
		"To": "undisclosed-recipients:;", "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All", "Mime-Version": "1.0",
		"X-Notification-Id": "0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11",
		"Bcc":               "", "Cc": "", "User-Agent": "", "X-Mailer": "", "X-Evil": "", "Content-Type": "text/plain; charset=utf-8",
		"Date": "Sat, 01 Jan 2000 05:30:00 +0530", // where virtual time begins
	} {
		if got := h.Get(field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
	if got := h.Get("Message-Id"); !strings.HasPrefix(got, "<"+string(n.Key())+".") || !strings.HasSuffix(got, "@id.test>") {
		t.Errorf("got %s", got)
	}
	if site, err := h.Text("X-Source-Site"); err != nil || site != "Werk Süd X-Evil: 1" {
		t.Errorf("got %q: %v", site, err)
	}
	for _, hidden := range []string{"a@x.test", "secret.person", "y.test"} {
		if strings.Contains(raw, hidden) {
			t.Errorf("%s is in the mail", hidden)
		}
	}
}

// E52, F1-05, F1-64: another attempt, another Mailer and another sender's host
// have the same Message-ID for the same recipients, in whatever order; other
// recipients of the same notification, and another site's notification of the same
// id, have another.
func TestTheMessageIDStays(t *testing.T) {
	t.Parallel()
	id := func(settings object, n *notify.Notification, to ...string) string {
		return parse(t, compose(t, settings, n, to...)).header.Get("Message-Id")
	}
	foreign := example()
	foreign.Origin.Site = "plant-8"
	first := id(nil, example(), "a@x.test", "b@x.test")
	if second := id(object{"ehlo": "other.test"}, example(), "b@x.test", "a@x.test"); first != second || !strings.HasSuffix(first, "@plant.test>") {
		t.Errorf("got %s and %s", first, second)
	}
	seen := map[string]string{first: "two"}
	for what, other := range map[string]string{
		"one": id(nil, example(), "a@x.test"), "the other": id(nil, example(), "b@x.test"), "another site": id(nil, foreign, "a@x.test", "b@x.test"),
	} {
		if seen[other] != "" {
			t.Errorf("%s and %s have %s", what, seen[other], other)
		}
		seen[other] = what
	}
}

// F1-70: an id is for programs, which do not decode words: it stands as it is.
func TestLongIDsStandAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, id := range []string{strings.Repeat("x", 58), strings.Repeat("order-", 33)} {
		n := example()
		n.ID = holdfast.ID(id)
		raw := compose(t, nil, n, "a@x.test")
		if !strings.Contains(raw, "\r\nX-Notification-Id: "+id+"\r\n") {
			t.Errorf("%d bytes: got\n%s", len(id), raw)
		}
	}
}

// E46, E50, E62: one address, without a name; its domain in ASCII, its local part as it is.
func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a@x.test": "a@x.test", " a@x.test ": "a@x.test", "jürgen@bücher.example": "jürgen@xn--bcher-kva.example",
		"a+tag@x.test": "a+tag@x.test", "A.B@X.Test": "A.B@x.test", "a@[127.0.0.1]": "a@[127.0.0.1]", "a@x.test.": "",
		"": "", "nobody": "", "a@": "", "@x.test": "", "a@x.test, b@x.test": "", "Doe, Jane <j@x.test>": "", "Jane <j@x.test>": "",
		"<j@x.test>": "", "j@x.test (Jane)": "", "a@x.test\r\nRCPT TO:<b@x.test>": "", "a b@x.test": "", `"a b"@x.test`: "", `"a>b"@x.test`: "",
		"a@x_y.test": "", "a@-x.test": "", "a@x..test": "", strings.Repeat("a", 65) + "@x.test": "", "a@" + strings.Repeat("x.", 200) + "test": "",
		"a\x00@x.test": "", "a@x.test;b@x.test": "", "a@[300.1.1.1]": "",
		// F1-70: quotes that change nothing, and those without which it would be another address or none.
		`"jane"@x.test`: "jane@x.test", `"a..b"@x.test`: "", `".a"@x.test`: "", `"a."@x.test`: "", `""@x.test`: "",
		"a\u200b@x.test": "", "a\u00adb@x.test": "", "a\u00a0b@x.test": "", "a@x\u200b.test": "", "a@x.test\u2060": "",
	} {
		got, err := email.ParseAddress(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, want %q: %v", text, got, want, err)
		}
	}
}
