package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/oauth"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// zgwLife is how long a minted token is valid.
const zgwLife = 12 * time.Hour

// authorize adds the credential of a target to a request. The error is a *holdfast.Failure if no
// token can be had.
func (s *Sender) authorize(ctx context.Context, t *Target, client *exchange.Client, h http.Header) (*grant, error) {
	switch a := &t.Auth; {
	case a.Bearer != "":
		h.Set("Authorization", "Bearer "+a.Bearer)
	case a.Basic != nil:
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(a.Basic.User+":"+a.Basic.Password)))
	case a.Key != nil:
		h.Set(a.Key.Header, a.Key.Value)
	case a.ZGW != nil:
		h.Set("Authorization", "Bearer "+a.ZGW.token(time.Now()))
	case a.OAuth2 != nil:
		g := s.grant(t, client)
		token, err := g.tokens.Token(ctx, *g.refused.Load())
		if err != nil {
			return nil, err
		}
		h.Set("Authorization", token.Type+" "+token.Access)
		return g, nil
	}
	return nil, nil //nolint:nilnil // there is no token that could be refused
}

// token returns a new token.
func (z *ZGW) token(now time.Time) string {
	claims, _ := json.Marshal(map[string]any{ // cannot fail
		"iss": z.Client, "client_id": z.Client, "user_id": "", "user_representation": "", "iat": now.Unix(), "exp": now.Add(zgwLife).Unix(),
	})
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + encode(claims)
	mac := hmac.New(sha256.New, []byte(z.Secret))
	mac.Write([]byte(signed)) // a hash never fails
	return signed + "." + encode(mac.Sum(nil))
}

// grant is the token of all targets with the same credentials.
type grant struct {
	tokens  *oauth.Tokens
	refused atomic.Pointer[string] // by a target; the next attempt fetches another one
}

// refuse notes the token of a request that was answered 401. It may have been withdrawn.
func (g *grant) refuse(sent http.Header) {
	_, token, _ := strings.Cut(sent.Get("Authorization"), " ")
	g.refused.Store(&token)
}

// grantKey says which targets share a token.
type grantKey struct {
	url, client, secret, scopes string
	tls                         TLS
}

func (s *Sender) grant(t *Target, client *exchange.Client) *grant {
	o := t.Auth.OAuth2
	key := grantKey{o.URL, o.Client, o.ClientSecret, strings.Join(o.Scopes, " "), t.TLS}
	g, _, _ := s.grants.get(key, func() (*grant, error) { // it never fails
		g := &grant{tokens: oauth.New(oauth.Grant{
			URL: o.URL, Client: o.Client, Secret: func() (string, error) { return o.ClientSecret, nil }, Scopes: o.Scopes, HTTP: client,
		})}
		g.refused.Store(new(string))
		return g, nil
	})
	return g
}

// hidden returns what must appear in no text about a request of this target: subscribers quote
// credentials that they refuse.
func (t *Target) hidden(sent http.Header) *secrets.Set {
	s := &secrets.Set{}
	s.AddURL(t.URL)
	for name, value := range t.Headers {
		s.AddHeaders(http.Header{name: {value}})
	}
	for i := range t.Secrets {
		_, key, _ := strings.Cut(t.Secrets[i].Value, "_")
		s.Add(t.Secrets[i].Value, key)
	}
	a := &t.Auth
	switch {
	case a.Basic != nil:
		s.AddBasic(a.Basic.User, a.Basic.Password)
	case a.Key != nil:
		s.AddHeader(a.Key.Value)
	case a.OAuth2 != nil:
		oauth.Hide(s, a.OAuth2.Client, a.OAuth2.ClientSecret)
	case a.ZGW != nil:
		s.Add(a.ZGW.Secret)
	}
	if _, token, _ := strings.Cut(sent.Get("Authorization"), " "); token != "" {
		s.Add(token)
	}
	return s
}
