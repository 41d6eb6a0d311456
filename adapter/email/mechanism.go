package email

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// speech is our side of an authentication exchange.
type speech struct {
	first  []byte   // nil: the server speaks first
	then   []string // answers to its challenges
	tokens bool     // the server explains a refused token in a challenge
	heard  string   // the server's explanation
}

// speech returns our side of the configured mechanism. LOGIN has no standard: servers name the two
// prompts differently, but always ask in the same order.
func (m *Mailer) speech(secret string) *speech {
	a := &m.settings.auth
	switch a.mechanism {
	case authLogin:
		return &speech{then: []string{a.user, secret}}
	case authXOAuth2:
		return &speech{first: []byte("user=" + a.user + "\x01auth=Bearer " + secret + "\x01\x01"), then: []string{""}, tokens: true}
	case authOAuthBearer: // RFC 7628, 3.1; the name is escaped as in RFC 5801
		name := strings.NewReplacer("=", "=3D", ",", "=2C").Replace(a.user)
		first := fmt.Sprintf("n,a=%s,\x01host=%s\x01port=%d\x01auth=Bearer %s\x01\x01", name, m.settings.host, m.settings.port, secret)
		return &speech{first: []byte(first), then: []string{"\x01"}, tokens: true}
	}
	return &speech{first: []byte("\x00" + a.user + "\x00" + secret)} // PLAIN
}

// next answers a challenge.
func (s *speech) next(question []byte) ([]byte, error) {
	if len(s.then) == 0 {
		return nil, errors.New("the server asks for more than the mechanism has")
	}
	if s.tokens {
		s.heard = string(question)
	}
	answer := s.then[0]
	s.then = s.then[1:]
	return []byte(answer), nil
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
