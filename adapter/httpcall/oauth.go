package httpcall

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/oauth"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// OAuth2 configures the client credentials grant (RFC 6749, section 4.4). A token is kept until a
// minute before it expires, or until the target refuses it. Only one token is fetched at a time.
type OAuth2 struct {
	URL          string // of the token endpoint
	ClientID     string
	ClientSecret string
	Scopes       []string
	TLS          TLS
	Addresses    []string // as in Config
}

// ClientCredentials returns an Auth with tokens of an authorization server.
func ClientCredentials(c OAuth2) (Auth, error) {
	client, err := newClient(c.TLS, c.Addresses, 1)
	if err != nil {
		return nil, fmt.Errorf("token endpoint: %w", err)
	}
	return &tokens{c.ClientID, c.ClientSecret, oauth.New(oauth.Grant{
		URL: c.URL, Client: c.ClientID, Secret: func() (string, error) { return c.ClientSecret, nil }, Scopes: c.Scopes,
		HTTP: client,
	})}, nil
}

type tokens struct {
	client, secret string
	kept           *oauth.Tokens
}

func (t *tokens) authorize(ctx context.Context, h http.Header, refused bool) (bool, error) {
	var old string
	if refused {
		_, old, _ = strings.Cut(h.Get("Authorization"), " ")
	}
	token, err := t.kept.Token(ctx, old)
	if err != nil {
		return false, err
	}
	h.Set("Authorization", token.Type+" "+token.Access)
	return true, nil
}

func (t *tokens) close() { t.kept.Close() }

func (t *tokens) hide(s *secrets.Set, sent http.Header) {
	oauth.Hide(s, t.client, t.secret)
	_, token, _ := strings.Cut(sent.Get("Authorization"), " ")
	s.Add(token)
}
