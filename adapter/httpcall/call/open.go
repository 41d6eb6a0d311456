package call

import (
	"fmt"
	"net/http"

	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/adapter/httpcall"
)

// Open makes the deliverer.
func (c *Settings) Open(o adapter.Options) (adapter.Deliverer, error) {
	conf := httpcall.Config{
		URL: c.URL, Method: c.Method, Header: http.Header{}, TLS: httpcall.TLS{CA: c.CA, Cert: c.Cert, Key: c.Key},
		Success: ranges(c.Success), Permanent: ranges(c.Permanent), MaxResponse: c.Response, Excerpt: o.Excerpt, Answer: o.Answer, Connections: o.Connections,
		Addresses: c.Addresses,
	}
	for name, value := range c.Headers {
		conf.Header.Set(name, value)
	}
	var err error
	if conf.Auth, err = c.auth(); err != nil {
		return nil, err
	}
	return httpcall.New(conf)
}

func (c *Settings) auth() (httpcall.Auth, error) {
	switch a := c.Auth; {
	case a.Basic != nil:
		return httpcall.Basic(a.Basic.User, string(a.Basic.Password.Bytes())), nil
	case !a.Bearer.IsZero():
		return httpcall.Bearer(string(a.Bearer.Bytes())), nil
	case a.Key != nil:
		return httpcall.Key(a.Key.Header, string(a.Key.Value.Bytes())), nil
	case a.OAuth2 != nil:
		auth, err := httpcall.ClientCredentials(httpcall.OAuth2{
			URL: a.OAuth2.URL, ClientID: a.OAuth2.Client, ClientSecret: string(a.OAuth2.Secret.Bytes()), Scopes: a.OAuth2.Scopes,
			TLS: httpcall.TLS{CA: c.CA}, Addresses: c.Addresses,
		})
		if err != nil {
			return nil, fmt.Errorf("oauth2: %w", err)
		}
		return auth, nil
	}
	return nil, nil //nolint:nilnil // none is a choice
}

func ranges(list []Statuses) (out []httpcall.Statuses) {
	for _, s := range list {
		out = append(out, httpcall.Statuses(s))
	}
	return out
}
