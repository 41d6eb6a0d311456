package config

import "strconv"

// Call is a foreign HTTP API that messages are delivered to, where a
// destination is no peer.
type Call struct {
	URL       string // {endpoint} and {id} in it stand for the message's
	Method    string
	Headers   map[string]string
	Auth      Auth
	CA        string // path of a further CA for https
	Cert, Key string // paths of our own certificate for https; both or none
	Success   []Statuses
	Permanent []Statuses
	Response  int64 // the longest answer that is taken, in bytes
}

// Auth says how a Call proves who calls: by one of these, or by none.
type Auth struct {
	Basic  *BasicAuth
	Bearer Secret
	Key    *KeyAuth
	OAuth2 *OAuth2
}

// BasicAuth is a user with a password (RFC 7617).
type BasicAuth struct {
	User     string
	Password Secret
}

// KeyAuth is a secret in a header.
type KeyAuth struct {
	Header string
	Value  Secret
}

// OAuth2 is the client credentials grant (RFC 6749, section 4.4).
type OAuth2 struct {
	URL    string // of the token endpoint
	Client string
	Secret Secret
	Scopes []string
}

// Secrets are those of a Call, by the key that names them.
func (a Auth) Secrets() map[string]Secret {
	found := map[string]Secret{}
	if a.Basic != nil {
		found["basic.password"] = a.Basic.Password
	}
	if !a.Bearer.IsZero() {
		found["bearer"] = a.Bearer
	}
	if a.Key != nil {
		found["key.value"] = a.Key.Value
	}
	if a.OAuth2 != nil {
		found["oauth2.secret"] = a.OAuth2.Secret
	}
	return found
}

// Statuses is a range of HTTP status codes, both ends included.
type Statuses struct{ First, Last int }

func (s Statuses) String() string {
	if s.First == s.Last {
		return strconv.Itoa(s.First)
	}
	return strconv.Itoa(s.First) + "-" + strconv.Itoa(s.Last)
}

// DefaultCall returns a call that lacks its URL. Without Success and Permanent,
// 2xx is a success, and 4xx is permanent but for 408, 425 and 429.
func DefaultCall() Call { return Call{Method: "POST", Response: mebibyte} }
