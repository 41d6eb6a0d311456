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

// compose writes a mail. It is the same for all recipients, of whom none is
// named in it (E53), and but for its Date at each attempt; identify completes it. All of it is
// ASCII, in short lines.
func (m *Mailer) compose(n *notify.Notification, now time.Time) ([]byte, error) {
	var h gomail.Header
	h.Set("From", mailbox(&m.settings.from))
	if a := m.settings.replyTo; a != nil {
		h.Set("Reply-To", mailbox(a))
	}
	h.Set("To", "undisclosed-recipients:;")
	h.Set("Subject", header(title(n), len("Subject: ")))
	h.SetDate(now.In(m.settings.zone))
	h.Set("Auto-Submitted", "auto-generated") // RFC 3834: nobody answers it by a program
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

// identify gives the mail the Message-ID of these recipients: whoever gets it
// twice can know it by that (E52), and a server that drops what it knows drops
// no other's mail, of another batch or a later attempt (F1-64).
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

// title is the subject on one line, and never empty.
func title(n *notify.Notification) string {
	return cmp.Or(line(n.Subject), line(n.Type), line(n.List), "Notification")
}

// text is a body with line ends as mail has them, and without what mail cannot
// carry.
func text(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n", "\x00", "\uFFFD").Replace(s)
}

// encoding is quoted-printable, which people can read in a source, unless that
// is longer than base64.
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

// mailbox is an address with its name, for a header field (E45).
func mailbox(a *mail.Address) string {
	if a.Name == "" || header(a.Name, len("Reply-To: ")) == a.Name {
		return a.String()
	}
	return encodedWords(a.Name) + " <" + a.Address + ">"
}

// header is text for a header field whose name takes so many bytes: control
// characters are gone before it is encoded (E42). What cannot stand as it
// is, or would be read as something else, is encoded.
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

// token is a word for programs: as it is, however long (RFC 2047, 5: they do not
// decode it), unless it has what no field can carry.
func token(s string) string {
	if isASCII(s) && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return s
	}
	return header(s, len("X-Notification-Id: "))
}

// encodedWords splits text into words of RFC 2047, each of whole characters
// and shorter than 75 bytes (E44).
func encodedWords(s string) string {
	const most = 36 // bytes of text; with its frame a word takes 60, and fits behind a field's name
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
