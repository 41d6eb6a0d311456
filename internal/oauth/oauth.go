// Package oauth keeps the token of a client of an authorization server, for
// all adapters that prove by one who they are.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// margin is how long before its end a token is replaced.
const margin = time.Minute

// Timeout is the bound for one call of the token endpoint.
const Timeout = 30 * time.Second

// Grant is the client credentials grant (RFC 6749, section 4.4).
type Grant struct {
	URL    string // of the token endpoint
	Client string
	Secret func() (string, error) // asked each time that a token is fetched; its error is shown to people
	Scopes []string
	HTTP   *http.Client
}

// Tokens keeps the token of a grant until a minute before its end, or until a
// target refuses it. One is fetched at a time. It may be used concurrently.
type Tokens struct {
	secret func() (string, error)
	client *http.Client

	turn  chan struct{} // who has it may look at what follows, and fetch a token
	conf  clientcredentials.Config
	token *oauth2.Token
}

// New returns the tokens of a grant; none is fetched yet.
func New(g Grant) *Tokens {
	return &Tokens{
		secret: g.Secret, client: g.HTTP, turn: make(chan struct{}, 1),
		conf: clientcredentials.Config{ClientID: g.Client, TokenURL: g.URL, Scopes: g.Scopes},
	}
}

// Token returns a token that is good for a minute or more, and is not the one
// that the target has refused; refused is empty where it has refused none. The error is a
// holdfast.Failure, and nothing has reached the target then.
func (t *Tokens) Token(ctx context.Context, refused string) (*oauth2.Token, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, &holdfast.Failure{Outcome: holdfast.Unreachable, Code: "token_timeout", Err: fmt.Errorf("wait for a token: %w", ctx.Err())}
	}
	if refused != "" && t.token != nil && t.token.AccessToken == refused {
		t.token = nil // else somebody has replaced it meanwhile
	}
	if t.token == nil || !t.token.Expiry.IsZero() && time.Until(t.token.Expiry) < margin {
		token, err := t.fetch(ctx)
		if err != nil {
			return nil, err
		}
		t.token = token
	}
	return t.token, nil
}

func (t *Tokens) fetch(ctx context.Context) (*oauth2.Token, error) {
	secret, err := t.secret()
	if err != nil {
		return nil, &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "secret", Err: err}
	}
	t.conf.ClientSecret = secret
	var p exchange.Progress
	token, err := t.conf.Token(p.Attach(context.WithValue(ctx, oauth2.HTTPClient, t.client)))
	if err == nil {
		return token, nil
	}
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if _, broken := errors.AsType[*url.Error](err); !ok && !broken && ctx.Err() == nil {
		return nil, &holdfast.Failure{
			Outcome: holdfast.Unreachable, Code: "token_unavailable", Err: errors.New("fetch a token: the authorization server's answer holds none"),
		}
	}
	if !ok || refused.Response == nil {
		// Nothing has reached the target.
		f := exchange.Failure(ctx, cause(err), &p)
		f.MaybeDelivered, f.Err = false, fmt.Errorf("fetch a token: %w", t.hidden(secret).Error(f.Err))
		if f.Outcome == holdfast.Transient {
			f.Outcome = holdfast.Unreachable
		}
		return nil, f
	}
	status := refused.Response.StatusCode
	f := &holdfast.Failure{
		Outcome: holdfast.Unreachable, Code: "token_unavailable", RetryAfter: retryafter.Of(refused.Response.Header),
		Err: fmt.Errorf("fetch a token: the authorization server answered %d", status),
	}
	if status/100 == 2 || status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests {
		f.Outcome, f.Code = holdfast.LaneFault, "token_refused"
		if code := refused.ErrorCode; code != "" && len(code) < 64 && !strings.ContainsFunc(code, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
			f.Err = fmt.Errorf("%w: %s", f.Err, t.hidden(secret).Clean(code))
		}
	}
	return nil, f
}

// hidden is what a server may quote, and nobody is to see.
func (t *Tokens) hidden(secret string) *secrets.Set {
	s := &secrets.Set{}
	s.AddURL(t.conf.TokenURL)
	Hide(s, t.conf.ClientID, secret)
	return s
}

// Hide adds a client's secret to what must not be shown, as it is and as it is
// sent (RFC 6749, section 2.3.1).
func Hide(s *secrets.Set, client, secret string) {
	s.AddBasic(client, secret)
	s.AddBasic(url.QueryEscape(client), url.QueryEscape(secret))
}

// cause is an error without the URL, which may hold a password or token.
func cause(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}
