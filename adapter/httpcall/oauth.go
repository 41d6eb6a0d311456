package httpcall

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
)

// OAuth2 is the client credentials grant (RFC 6749, section 4.4). A token is
// kept until a minute before its end, or until the target refuses it, and one
// is fetched at a time.
type OAuth2 struct {
	URL          string // of the token endpoint
	ClientID     string
	ClientSecret string
	Scopes       []string
	TLS          TLS
}

// tokenMargin is how long before its end a token is replaced.
const tokenMargin = time.Minute

// tokenTimeout bounds one call of the token endpoint.
const tokenTimeout = 30 * time.Second

// ClientCredentials is an Auth by tokens of an authorization server.
func ClientCredentials(c OAuth2) (Auth, error) {
	conf, err := c.TLS.config()
	if err != nil {
		return nil, fmt.Errorf("token endpoint: %w", err)
	}
	return &tokens{
		conf: clientcredentials.Config{
			ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.URL, Scopes: c.Scopes,
		},
		client: &http.Client{Transport: newTransport(conf, 1), CheckRedirect: stay, Timeout: tokenTimeout},
		turn:   make(chan struct{}, 1),
	}, nil
}

type tokens struct {
	conf   clientcredentials.Config
	client *http.Client

	turn  chan struct{} // who has it may look at the token and fetch one
	token *oauth2.Token
}

func (t *tokens) authorize(ctx context.Context, h http.Header, refused bool) (bool, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return false, &holdfast.Failure{Outcome: holdfast.Unreachable, Code: "token_timeout", Err: fmt.Errorf("wait for a token: %w", ctx.Err())}
	}
	if refused && t.token != nil && h.Get("Authorization") == t.token.Type()+" "+t.token.AccessToken {
		t.token = nil // else somebody has replaced it meanwhile
	}
	if t.token == nil || !t.token.Expiry.IsZero() && time.Until(t.token.Expiry) < tokenMargin {
		token, err := t.fetch(ctx)
		if err != nil {
			return false, err
		}
		t.token = token
	}
	h.Set("Authorization", t.token.Type()+" "+t.token.AccessToken)
	return true, nil
}

func (t *tokens) fetch(ctx context.Context) (*oauth2.Token, error) {
	var p exchange.Progress
	token, err := t.conf.Token(p.Attach(context.WithValue(ctx, oauth2.HTTPClient, t.client)))
	if err == nil {
		return token, nil
	}
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || refused.Response == nil {
		// Nothing has reached the target.
		f := exchange.Failure(ctx, cause(err), &p)
		f.MaybeDelivered, f.Err = false, fmt.Errorf("fetch a token: %w", f.Err)
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
			f.Err = fmt.Errorf("%w: %s", f.Err, code)
		}
	}
	return nil, f
}
