package email

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-message"
	gomail "github.com/emersion/go-message/mail"

	"github.com/holdfast-mq/holdfast/notify"
)

// compose writes a mail. It names no recipient, so it is the same for all (E53); only its Date
// differs between attempts. identify completes it. It is all ASCII, in short lines.
func (m *Mailer) compose(n *notify.Notification, now time.Time) ([]byte, error) {
	var h gomail.Header
	h.Set("From", mailbox(&m.settings.from))
	if a := m.settings.replyTo; a != nil {
		h.Set("Reply-To", mailbox(a))
	}
	h.Set("To", "undisclosed-recipients:;")
	h.Set("Subject", header(title(n), len("Subject: ")))
	h.SetDate(now.In(m.settings.zone))
	h.Set("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies
	h.Set("X-Auto-Response-Suppress", "All")  // the same, for Exchange
	h.Set("X-Notification-Id", token(string(n.ID)))
	if n.Origin.Site != "" {
		h.Set("X-Source-Site", header(n.Origin.Site, len("X-Source-Site: ")))
	}
	h.SetContentType("text/plain", map[string]string{"charset": "utf-8"})
	body := text(n.Body)
	h.Set("Content-Transfer-Encoding", encoding(body))

	var b bytes.Buffer
	_, _ = fmt.Fprintf(&b, "%s%s.%s@%s>\r\n", idField, n.Key(), strings.Repeat("0", setSize), m.domain)
	w, err := message.CreateWriter(&b, h.Header)
	if err != nil {
		return nil, fmt.Errorf("compose mail: %w", err)
	}
	if _, err := w.Write([]byte(body)); err != nil {
		return nil, fmt.Errorf("compose mail: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compose mail: %w", err)
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("\r\n")) {
		b.WriteString("\r\n")
	}
	return b.Bytes(), nil
}

const (
	idField = "Message-Id: <"
	setSize = 12 // letters that stand for the recipients of a mail
)

// identify sets a Message-ID made from these recipients. A person who gets the mail twice can
// recognize it by that (E52). A server that drops duplicates does not drop the mail of another
// batch or of a later attempt (F1-64).
func (r *run) identify(recipients []int) {
	all := make([]string, 0, len(recipients))
	for _, i := range recipients {
		all = append(all, r.addr[i])
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
	set := strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:setSize])
	copy(r.mail[len(idField)+len(r.n.Key())+1:], set)
}

// title returns the subject on one line; it is never empty.
func title(n *notify.Notification) string {
	return cmp.Or(line(n.Subject), line(n.Type), line(n.List), "Notification")
}

// text returns a body with the line ends of mail, without what mail cannot carry.
func text(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n", "\x00", "\uFFFD").Replace(s)
}

// encoding returns quoted-printable, which people can read in the source, unless base64 is shorter.
func encoding(body string) string {
	escaped := 0
	for i := range len(body) {
		if c := body[i]; c >= 0x7f || c == '=' || c < ' ' && c != '\r' && c != '\n' && c != '\t' {
			escaped++
		}
	}
	if escaped > len(body)/3 {
		return "base64"
	}
	return "quoted-printable"
}

// mailbox returns an address with its name, for a header field (E45).
func mailbox(a *mail.Address) string {
	if a.Name == "" || header(a.Name, len("Reply-To: ")) == a.Name {
		return a.String()
	}
	return encodedWords(a.Name) + " <" + a.Address + ">"
}

// header returns text for a header field whose name has the given length. It removes control
// characters before it encodes (E42). Text that cannot stand unencoded, or would be read as
// something else, is encoded.
func header(s string, name int) string {
	s = line(s)
	plain := isASCII(s) && !strings.Contains(s, "=?") && !strings.Contains(s, "  ")
	for word := range strings.SplitSeq(s, " ") {
		plain = plain && len(word) <= 76-name
	}
	if plain {
		return s
	}
	return encodedWords(s)
}

// token returns a word for programs unchanged, however long (RFC 2047, 5: programs do not decode
// it), unless it has characters that no field can carry.
func token(s string) string {
	if isASCII(s) && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return s
	}
	return header(s, len("X-Notification-Id: "))
}

// encodedWords splits text into encoded words of RFC 2047. Each has whole characters and fewer than
// 75 bytes (E44).
func encodedWords(s string) string {
	const most = 36 // bytes of text; with its frame a word takes 60, and fits after the field's name
	var words []string
	for len(s) > 0 {
		end := min(most, len(s))
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end--
		}
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(s[:end]))+"?=")
		s = s[end:]
	}
	return strings.Join(words, " ")
}
