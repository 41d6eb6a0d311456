// Package oauth keeps the token of a client of an authorization server, for
// all adapters that prove by one who they are.
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

// margin is how long before its end a token is replaced.
const margin = time.Minute

// timeout is the bound for one call of the token endpoint.
const timeout = 30 * time.Second

// Grant is the client credentials grant (RFC 6749, section 4.4).
type Grant struct {
	URL    string // of the token endpoint
	Client string
	Secret func() (string, error) // asked each time that a token is fetched; its error is shown to people
	Scopes []string
	HTTP   *exchange.Client
}

// Token is what an authorization server gives.
type Token struct {
	Access string
	Type   string    // as it stands in a header: Bearer
	until  time.Time // zero: for ever
}

// Tokens keeps the token of a grant until a minute before its end, or until a
// target refuses it. One is fetched at a time. It may be used concurrently.
type Tokens struct {
	grant Grant

	turn   chan struct{} // who has it may look at what follows, and fetch a token
	inBody bool          // the next call has the client's secret in the body
	worked bool          // it has worked so
	token  *Token
	last   *holdfast.Failure // what the server said when it asked us to wait
	until  time.Time
}

// New returns the tokens of a grant; none is fetched yet.
func New(g Grant) *Tokens { return &Tokens{grant: g, turn: make(chan struct{}, 1)} }

// Token returns a token that is good for a minute or more, and is not the one
// that the target has refused; refused is empty where it has refused none. The error is a
// holdfast.Failure, and nothing has reached the target then.
func (t *Tokens) Token(ctx context.Context, refused string) (*Token, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, &holdfast.Failure{Outcome: holdfast.Unreachable, Code: "token_timeout", Err: fmt.Errorf("wait for a token: %w", ctx.Err())}
	}
	if refused != "" && t.token != nil && t.token.Access == refused {
		t.token = nil // else somebody has replaced it meanwhile
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

// Close closes connections that are idle.
func (t *Tokens) Close() { t.grant.HTTP.Close() }

// fetch asks for a token, by one call, and by none as long as the server has asked us to wait.
// Some servers take the client's secret in the header only, some in the body only
// (RFC 6749, section 2.3.1), and none says which: who is refused in one way, and was never taken
// so, comes in the other the next time.
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

// hidden is what a server may quote, and nobody is to see.
func (t *Tokens) hidden(secret string) *secrets.Set {
	s := &secrets.Set{}
	s.AddURL(t.grant.URL)
	Hide(s, t.grant.Client, secret)
	return s
}

// Hide adds a client's secret to what must not be shown, as it is and as it is
// sent (RFC 6749, section 2.3.1).
func Hide(s *secrets.Set, client, secret string) {
	s.AddBasic(client, secret)
	s.AddBasic(url.QueryEscape(client), url.QueryEscape(secret))
}
