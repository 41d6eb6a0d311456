package email

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// speech is what we say in an exchange.
type speech struct {
	first  []byte   // nil: the server asks first
	then   []string // the answers to its questions
	tokens bool     // who refuses a token says why by a question
	heard  string   // and that is it
}

// speech is that of the mechanism of the settings. LOGIN has no standard: servers
// differ in what they call the two things that they ask for, but not in their order.
func (m *Mailer) speech(secret string) *speech {
	a := &m.settings.auth
	switch a.mechanism {
	case authLogin:
		return &speech{then: []string{a.user, secret}}
	case authXOAuth2:
		return &speech{first: []byte("user=" + a.user + "\x01auth=Bearer " + secret + "\x01\x01"), then: []string{""}, tokens: true}
	case authOAuthBearer: // RFC 7628, 3.1; the name as RFC 5801 escapes it
		name := strings.NewReplacer("=", "=3D", ",", "=2C").Replace(a.user)
		first := fmt.Sprintf("n,a=%s,\x01host=%s\x01port=%d\x01auth=Bearer %s\x01\x01", name, m.settings.host, m.settings.port, secret)
		return &speech{first: []byte(first), then: []string{"\x01"}, tokens: true}
	}
	return &speech{first: []byte("\x00" + a.user + "\x00" + secret)} // PLAIN
}

// next answers a question.
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
