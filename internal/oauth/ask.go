package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// mostWait is the longest wait that the server may ask for: the target itself is well.
const mostWait = 5 * time.Minute

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 64 << 10

// ask makes one request. refused means that the server does not accept the client in this way.
// After any failure, nothing has reached the target.
func (t *Tokens) ask(ctx context.Context, secret string, inBody bool) (token *Token, refused bool, f *holdfast.Failure) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(t.grant.Scopes) > 0 {
		form.Set("scope", strings.Join(t.grant.Scopes, " "))
	}
	if inBody {
		form.Set("client_id", t.grant.Client)
		form.Set("client_secret", secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.grant.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, false, &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "token_refused", Err: errors.New("fetch a token: the URL is invalid")}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "holdfast")
	if !inBody {
		req.SetBasicAuth(url.QueryEscape(t.grant.Client), url.QueryEscape(secret))
	}
	hide := func() *secrets.Set { return t.hidden(secret) }
	resp, f := t.grant.HTTP.Do(req, hide)
	if f != nil {
		return nil, false, away(f)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read, or the error says so
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && resp.StatusCode/100 == 2 {
		return nil, false, away(exchange.Unanswered(ctx, err, true, hide))
	}
	token, refused, f = t.judge(resp.StatusCode, read(resp.Header, body), secret)
	if f != nil {
		f.RetryAfter = min(retryafter.Of(resp.Header), mostWait)
	}
	return token, refused, f
}

// judge reads an answer. By its status it distinguishes what time cures from what somebody must
// change.
func (t *Tokens) judge(status int, is said, secret string) (token *Token, refused bool, f *holdfast.Failure) {
	switch {
	case status/100 == 2 && is.Access != "":
		return is.token(), false, nil
	case status/100 == 2: // lasting, until somebody changes a setting here or there
		return nil, false, t.turnedDown("without one: is the URL that of its token endpoint?", is, secret)
	case status/100 == 3:
		return nil, false, t.turnedDown(fmt.Sprintf("%d, which leads elsewhere: redirects are not followed", status), said{}, secret)
	case status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooEarly && status != http.StatusTooManyRequests:
		refused = status == http.StatusBadRequest || status == http.StatusUnauthorized
		return nil, refused, t.turnedDown(strconv.Itoa(status), is, secret)
	}
	f = t.turnedDown(strconv.Itoa(status), is, secret)
	f.Outcome, f.Code = holdfast.Unreachable, "token_unavailable"
	return nil, false, f
}

// away returns the failure to reach the server. The target has received nothing.
func away(f *holdfast.Failure) *holdfast.Failure {
	f.MaybeDelivered, f.Err = false, fmt.Errorf("fetch a token: %w", f.Err)
	if f.Outcome == holdfast.Transient {
		f.Outcome = holdfast.Unreachable
	}
	return f
}

// turnedDown returns the failure for a refusal that no retry cures, with the server's own words
// (RFC 6749, section 5.2).
func (t *Tokens) turnedDown(how string, is said, secret string) *holdfast.Failure {
	err := errors.New("fetch a token: the authorization server answered " + how)
	for _, words := range []string{is.Error, is.Description} {
		if words = shown.Line(t.hidden(secret).Clean(words), mostWords); words != "" {
			err = fmt.Errorf("%w: %s", err, words)
		}
	}
	return &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "token_refused", Err: err}
}

// mostWords limits each of the server's own words, in bytes.
const mostWords = 500

// said is an answer (RFC 6749, section 5). Some servers send the seconds as a text.
type said struct {
	Access  string          `json:"access_token"`
	Type    string          `json:"token_type"`
	Expires json.RawMessage `json:"expires_in"`
	Error   string          `json:"error"`

	Description string `json:"error_description"`
}

// read reads an answer, also in the form of some older servers. Unreadable parts stay empty.
func read(h http.Header, body []byte) (s said) {
	switch kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); kind {
	case "application/x-www-form-urlencoded", "text/plain":
		form, err := url.ParseQuery(string(body))
		if err == nil && form.Has("access_token") || form.Has("error") {
			return said{form.Get("access_token"), form.Get("token_type"), json.RawMessage(form.Get("expires_in")), form.Get("error"), form.Get("error_description")}
		}
	}
	if json.Unmarshal(body, &s) != nil || strings.ContainsFunc(s.Access, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return said{}
	}
	return s
}

func (s *said) token() *Token {
	t := &Token{Access: s.Access, Type: cmp.Or(s.Type, "Bearer")}
	if strings.EqualFold(t.Type, "bearer") {
		t.Type = "Bearer" // some targets insist on this case
	}
	if n, err := strconv.ParseFloat(strings.Trim(string(s.Expires), `"`), 64); err == nil && n > 0 {
		t.until = time.Now().Add(time.Duration(min(n, math.MaxInt32)) * time.Second)
	}
	return t
}
