package httpcall

import (
	"context"
	"encoding/base64"
	"net/http"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// Auth proves to the target who calls.
type Auth interface {
	// authorize adds the proof, another one if the target has refused the one
	// that is there. renewable says that there is another one then.
	authorize(ctx context.Context, h http.Header, refused bool) (renewable bool, err error)
	// hide adds to s what must not be shown of a request that was sent.
	hide(s *secrets.Set, sent http.Header)
	close()
}

// Basic is a user with a password (RFC 7617).
func Basic(user, password string) Auth {
	return fixed{
		"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)),
		func(s *secrets.Set) { s.AddBasic(user, password) },
	}
}

// Bearer is a token (RFC 6750).
func Bearer(token string) Auth {
	return fixed{"Authorization", "Bearer " + token, func(s *secrets.Set) { s.Add(token) }}
}

// Key is a secret in a header of the target's choice, such as X-Api-Key.
func Key(header, value string) Auth {
	return fixed{header, value, func(s *secrets.Set) { s.AddHeader(value) }}
}

// fixed is a header that is always the same.
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
