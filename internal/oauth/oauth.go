// Package oauth keeps the access token of a client of an authorization server, for all adapters
// that authenticate with one.
package oauth

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// margin is how long before its expiry a token is replaced.
const margin = time.Minute

// timeout limits one call of the token endpoint.
const timeout = 30 * time.Second

// Grant configures the client credentials grant (RFC 6749, section 4.4).
type Grant struct {
	URL    string // of the token endpoint
	Client string
	Secret func() (string, error) // called for each fetch of a token; people see its error
	Scopes []string
	HTTP   *exchange.Client
}

// Token is an access token.
type Token struct {
	Access string
	Type   string    // the scheme of the header: Bearer
	until  time.Time // zero: for ever
}

// Tokens keeps the token of a grant until a minute before its expiry, or until a target refuses it.
// It fetches one token at a time. It may be used concurrently.
type Tokens struct {
	grant Grant

	turn   chan struct{} // its holder may use the fields below, and fetch a token
	inBody bool          // the next call sends the client's secret in the body
	worked bool          // this way has worked before
	token  *Token
	last   *holdfast.Failure // the server's answer when it asked us to wait
	until  time.Time
}

// New returns the Tokens of a grant. It fetches none yet.
func New(g Grant) *Tokens { return &Tokens{grant: g, turn: make(chan struct{}, 1)} }

// Token returns a token that is valid for at least a minute and is not the refused one. refused is
// empty if the target has refused none. The error is a *holdfast.Failure; nothing has reached the
// target then.
func (t *Tokens) Token(ctx context.Context, refused string) (*Token, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, &holdfast.Failure{Outcome: holdfast.Unreachable, Code: "token_timeout", Err: fmt.Errorf("wait for a token: %w", ctx.Err())}
	}
	if refused != "" && t.token != nil && t.token.Access == refused {
		t.token = nil // otherwise another goroutine has replaced it
	}
	if t.token == nil || !t.token.until.IsZero() && time.Until(t.token.until) < margin {
		token, f := t.fetch(ctx)
		if f != nil {
			return nil, f
		}
		t.token = token
	}
	return t.token, nil
}

// Close closes idle connections.
func (t *Tokens) Close() { t.grant.HTTP.Close() }

// fetch requests a token with one call, or with none while the server has asked us to wait. Some
// servers accept the client's secret only in the header, some only in the body (RFC 6749, section
// 2.3.1), and none says which. If the client is refused in one way that has never worked, the next
// call uses the other.
func (t *Tokens) fetch(ctx context.Context) (*Token, *holdfast.Failure) {
	if wait := time.Until(t.until); wait > 0 {
		f := *t.last
		f.RetryAfter = wait
		return nil, &f
	}
	secret, err := t.grant.Secret()
	if err != nil {
		return nil, &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "secret", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	token, refused, f := t.ask(ctx, secret, t.inBody)
	if f == nil {
		t.worked = true
		return token, nil
	}
	if refused && !t.worked {
		t.inBody = !t.inBody
	}
	t.last, t.until = f, time.Now().Add(f.RetryAfter)
	return nil, f
}

// hidden returns the secrets that a server may quote.
func (t *Tokens) hidden(secret string) *secrets.Set {
	s := &secrets.Set{}
	s.AddURL(t.grant.URL)
	Hide(s, t.grant.Client, secret)
	return s
}

// Hide adds a client's secret to the texts that must not be shown, both plain and in the form in
// which it is sent (RFC 6749, section 2.3.1).
func Hide(s *secrets.Set, client, secret string) {
	s.AddBasic(client, secret)
	s.AddBasic(url.QueryEscape(client), url.QueryEscape(secret))
}
