package httpcall

import (
	"context"
	"encoding/base64"
	"net/http"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// Auth authenticates a call to its target.
type Auth interface {
	// authorize adds the credential; if the target has refused the current one, it adds another.
	// renewable reports that another one can be had after a refusal.
	authorize(ctx context.Context, h http.Header, refused bool) (renewable bool, err error)
	// hide adds to s the secrets of a request that was sent.
	hide(s *secrets.Set, sent http.Header)
	close()
}

// Basic authenticates with user and password (RFC 7617).
func Basic(user, password string) Auth {
	return fixed{
		"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)),
		func(s *secrets.Set) { s.AddBasic(user, password) },
	}
}

// Bearer authenticates with a fixed token (RFC 6750).
func Bearer(token string) Auth {
	return fixed{"Authorization", "Bearer " + token, func(s *secrets.Set) { s.Add(token) }}
}

// Key authenticates with a secret in a header of the target's choice, such as X-Api-Key.
func Key(header, value string) Auth {
	return fixed{header, value, func(s *secrets.Set) { s.AddHeader(value) }}
}

// fixed is a header that never changes.
type fixed struct {
	name, value string
	secret      func(*secrets.Set)
}

func (f fixed) authorize(_ context.Context, h http.Header, _ bool) (bool, error) {
	h.Set(f.name, f.value)
	return false, nil
}

func (fixed) close() {}

func (f fixed) hide(s *secrets.Set, _ http.Header) { f.secret(s) }
