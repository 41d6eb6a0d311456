package httpcall

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// hidden returns the secrets of a request with these headers: targets quote credentials that they
// refuse.
func (c *Caller) hidden(sent http.Header) *secrets.Set {
	s := &secrets.Set{}
	s.AddURL(c.conf.URL)
	s.AddHeaders(c.conf.Header)
	if c.conf.Auth != nil {
		c.conf.Auth.hide(s, sent)
	}
	return s
}

// mostWait is the longest wait that a target may ask for.
const mostWait = time.Hour

// refused classifies an answer that is not a success.
func (c *Caller) refused(resp *http.Response, sent http.Header) *holdfast.Failure {
	f := &holdfast.Failure{
		Code: fmt.Sprintf("http_%d", resp.StatusCode), RetryAfter: min(retryafter.Of(resp.Header), mostWait),
		Err: fmt.Errorf("the endpoint answered %d", resp.StatusCode),
	}
	if c.conf.permanent(resp.StatusCode) {
		f.Outcome = holdfast.Permanent
	}
	text, cut := c.said(resp.Body, sent)
	if c.conf.Answer > 0 && text != "" {
		f.Answer = shown.Clip(text, c.conf.Answer)
	}
	if text := c.excerpt(text, cut); text != "" {
		f.Err = fmt.Errorf("%w: %s", f.Err, text)
	}
	return f
}

// said returns the beginning of a body without secrets, and whether it has more. It reads somewhat more than is shown,
// so that each secret in the shown part is there as a whole, and so that removed secrets leave no gap.
func (c *Caller) said(body io.Reader, sent http.Header) (text string, cut bool) {
	shows := max(c.conf.Excerpt, c.conf.Answer)
	if shows <= 0 {
		return "", false
	}
	hidden := c.hidden(sent)
	most := shows + utf8.UTFMax + 2*hidden.Longest()
	raw, _ := io.ReadAll(io.LimitReader(body, int64(most)+1)) // on an error: what was read
	if cut = len(raw) > most; cut {
		text = hidden.CleanStart(string(raw))
	} else {
		text = hidden.Clean(string(raw))
	}
	if !utf8.ValidString(text) {
		return "", cut
	}
	return text, cut
}

// mostSpace is how much of a text excerpt looks at beyond what it shows: spaces in a row become one.
const mostSpace = 4 << 10

// excerpt returns the beginning of what was said, on one line.
func (c *Caller) excerpt(text string, cut bool) string {
	if c.conf.Excerpt <= 0 {
		return ""
	}
	if most := c.conf.Excerpt + mostSpace; len(text) > most { // skip the rest
		text, cut = strings.TrimSuffix(shown.Clip(text, most), "…"), true
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(text) > c.conf.Excerpt {
		for text, cut = text[:c.conf.Excerpt], true; !utf8.ValidString(text); {
			text = text[:len(text)-1] // drop a character that was cut
		}
	}
	if cut {
		text += "…"
	}
	return text
}
