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
	if text := c.excerpt(resp.Body, sent); text != "" {
		f.Err = fmt.Errorf("%w: %s", f.Err, text)
	}
	return f
}

// excerpt returns the beginning of the body, on one line. It reads somewhat more than it shows, so
// that each secret in the shown part is there as a whole, and so that removed secrets leave no gap.
func (c *Caller) excerpt(body io.Reader, sent http.Header) string {
	if c.conf.Excerpt <= 0 {
		return ""
	}
	hidden := c.hidden(sent)
	most := c.conf.Excerpt + utf8.UTFMax + 2*hidden.Longest()
	raw, _ := io.ReadAll(io.LimitReader(body, int64(most)+1)) // on an error: what was read
	var text string
	cut := len(raw) > most
	if cut {
		text = hidden.CleanStart(string(raw))
	} else {
		text = hidden.Clean(string(raw))
	}
	if !utf8.ValidString(text) {
		return ""
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
