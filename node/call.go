package node

import (
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast/adapter/httpcall"
	"github.com/holdfast-mq/holdfast/config"
)

// shownOfRefusal is how much of a target's refusal people get to see.
const shownOfRefusal = 300

// callWait is how long a request waits for the outcome of its call or write
// unless it says otherwise (SF-03: what can be answered at once is).
const callWait = 10 * time.Second

// newCaller makes the way to a destination that is a foreign API.
func newCaller(d config.Destination) (*httpcall.Caller, error) {
	c := d.Call
	conf := httpcall.Config{
		URL: c.URL, Method: c.Method, Header: http.Header{}, TLS: httpcall.TLS{CA: c.CA, Cert: c.Cert, Key: c.Key},
		Success: statuses(c.Success), Permanent: statuses(c.Permanent), MaxResponse: c.Response, Excerpt: shownOfRefusal, Connections: d.Concurrency,
	}
	for name, value := range c.Headers {
		conf.Header.Set(name, value)
	}
	var err error
	if conf.Auth, err = authOf(c); err != nil {
		return nil, err
	}
	return httpcall.New(conf)
}

func authOf(c *config.Call) (httpcall.Auth, error) {
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
			TLS: httpcall.TLS{CA: c.CA},
		})
		if err != nil {
			return nil, fmt.Errorf("oauth2: %w", err)
		}
		return auth, nil
	}
	return nil, nil //nolint:nilnil // none is a choice
}

func statuses(list []config.Statuses) (out []httpcall.Statuses) {
	for _, s := range list {
		out = append(out, httpcall.Statuses(s))
	}
	return out
}
