package fanout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
)

// Authorization says how requests to a subscriber are authorized. Its kind says which fields it has beside
// the secret.
type Authorization struct {
	Kind   AuthorizationKind `json:"kind"`
	User   string            `json:"user,omitempty"`   // of Basic
	Header string            `json:"header,omitempty"` // of HeaderKey
	URL    string            `json:"url,omitempty"`    // of OAuth2: of the token endpoint
	Client string            `json:"client,omitempty"` // of OAuth2 and ZGW
	Scopes []string          `json:"scopes,omitempty"` // of OAuth2
	Sealed string            `json:"sealed"`           // token, password, key, or secret of the client
}

// AuthorizationKind is a way to authorize requests.
type AuthorizationKind string

// The kinds of authorization.
const (
	Bearer    AuthorizationKind = "bearer" // a token as it stands
	Basic     AuthorizationKind = "basic"  // user and password (RFC 7617)
	HeaderKey AuthorizationKind = "key"    // a secret in a header, such as X-Api-Key
	OAuth2    AuthorizationKind = "oauth2" // a token by client credentials (RFC 6749, section 4.4)
	ZGW       AuthorizationKind = "zgw"    // a JWT for each request, as the Dutch APIs for case management take it
)

// TLS is what a subscriber needs besides the roots of the system. All are PEM.
type TLS struct {
	CA     string `json:"ca,omitempty"`   // further authorities
	Cert   string `json:"cert,omitempty"` // our own certificate, with its chain
	Sealed string `json:"key,omitempty"`  // the key of Cert
}

// Use says what a secret of a subscription is for.
type Use string

// The uses of secrets.
const (
	ForSigning       Use = "signing"
	ForAuthorization Use = "authorization"
	ForTLS           Use = "tls"
)

// Sealed is one sealed secret of a subscription.
type Sealed struct {
	Use   Use
	Field string  // such as secrets[0]
	Text  *string // where it stands
}

// Sealed returns the sealed secrets.
func (s *Settings) Sealed() (all []Sealed) {
	for i := range s.Secrets {
		all = append(all, Sealed{ForSigning, fmt.Sprintf("secrets[%d]", i), &s.Secrets[i].Sealed})
	}
	if s.Authorization != nil {
		all = append(all, Sealed{ForAuthorization, "authorization.secret", &s.Authorization.Sealed})
	}
	if s.TLS != nil && s.TLS.Sealed != "" {
		all = append(all, Sealed{ForTLS, "tls.key", &s.TLS.Sealed})
	}
	return all
}

// Bounds of authorizations, in bytes.
const (
	maxPEM    = 64 << 10
	maxScopes = 32
)

// checkAuthorization returns what does not fit the kind. Whether a value is missing or wrong is the adapter's
// to say.
func (s *Settings) checkAuthorization() (faults []error) {
	a := s.Authorization
	if a == nil {
		return nil
	}
	bad := func(field, value, problem string) {
		faults = append(faults, &holdfast.FieldError{Field: "authorization." + field, Value: value, Problem: problem})
	}
	if !slices.Contains([]AuthorizationKind{Bearer, Basic, HeaderKey, OAuth2, ZGW}, a.Kind) {
		bad("kind", fmt.Sprintf("%.80s", a.Kind), "must be bearer, basic, key, oauth2 or zgw")
		return faults
	}
	for _, f := range []struct {
		name, value string
		of          []AuthorizationKind
	}{
		{"user", a.User, []AuthorizationKind{Basic}},
		{"header", a.Header, []AuthorizationKind{HeaderKey}},
		{"url", a.URL, []AuthorizationKind{OAuth2}},
		{"client", a.Client, []AuthorizationKind{OAuth2, ZGW}},
	} {
		if f.value != "" && !slices.Contains(f.of, a.Kind) {
			bad(f.name, f.value, fmt.Sprintf("does not belong to kind %s: remove it", a.Kind))
		}
	}
	if a.Kind != OAuth2 && len(a.Scopes) > 0 {
		bad("scopes", fmt.Sprint(len(a.Scopes)), fmt.Sprintf("do not belong to kind %s: remove them", a.Kind))
	}
	if len(a.Scopes) > maxScopes {
		bad("scopes", fmt.Sprint(len(a.Scopes)), fmt.Sprintf("are more than %d", maxScopes))
	}
	return faults
}

// checkTLS finds a key that stands where it is no secret: one file may hold it beside its certificate.
func (s *Settings) checkTLS() (faults []error) {
	t := s.TLS
	if t == nil {
		return nil
	}
	bad := func(field, problem string) {
		faults = append(faults, &holdfast.FieldError{Field: field, Problem: problem})
	}
	for _, f := range []struct{ field, text string }{{"tls.ca", t.CA}, {"tls.cert", t.Cert}} {
		if len(f.text) > maxPEM {
			bad(f.field, fmt.Sprintf("has %d bytes; at most %d fit", len(f.text), maxPEM))
		}
		if strings.Contains(f.text, "PRIVATE KEY") {
			bad(f.field, "holds a private key, which would be shown: keep the certificates here, and give the key as tls.key")
		}
	}
	return faults
}
