package email

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/emersion/go-sasl"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// read returns a secret as it is now.
func (m *Mailer) read(use notify.SecretUse) (string, error) {
	name := use.Secret
	raw, err := m.secret(use)
	if err != nil {
		return "", fmt.Errorf("read secret %s: %s", name, clip(err.Error(), 500))
	}
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "":
		return "", fmt.Errorf("secret %s is empty", name)
	case strings.ContainsFunc(text, isControl):
		return "", fmt.Errorf("secret %s has several lines, or control characters", name)
	}
	return text, nil
}

// authenticate proves who we are, by another token than the refused one where
// there are tokens. It tells the token that it used.
func (m *Mailer) authenticate(ctx context.Context, s *session, refused string) (token string, f *holdfast.Failure) {
	a := &m.settings.auth
	mechanism := strings.ToUpper(a.mechanism)
	switch {
	case a.mechanism == authNone:
		return "", nil
	case s.tls == "" && !m.settings.allowInsecureAuth:
		return "", hold("auth_needs_tls", "AUTH: the connection is not encrypted, and credentials are not sent in clear unless allowInsecureAuth is set")
	case !s.client.SupportsAuth(mechanism):
		_, offered := s.client.Extension("AUTH")
		if offered == "" {
			offered = "none"
		}
		return "", hold("auth_not_offered", fmt.Sprintf("AUTH: the server does not offer %s here; it offers %s", mechanism, clip(offered, 200)))
	}
	var secret string
	if m.tokens != nil {
		t, err := m.tokens.Token(ctx, refused)
		if err != nil {
			f = holdfast.AsFailure(err)
			f.RetryAfter = min(f.RetryAfter, mostWait)
			return "", f
		}
		secret, token = t.Access, t.Access
	} else {
		var err error
		if secret, err = m.read(m.settings.passwordUse()); err != nil {
			return "", &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "secret", Err: err}
		}
	}
	client, said := m.mechanism(secret, &s.scrub)
	err := s.client.Auth(client)
	if err == nil {
		return token, nil
	}
	r, ok := replyOf(err)
	if !ok {
		return token, unconnected(ctx, "AUTH", err, &s.scrub)
	}
	if *said != "" {
		r.text += "; " + *said
	}
	r.text += advice(r)
	return token, r.entry("AUTH", &s.scrub)
}

// advice says what helps where the server's own words do not (E16).
func advice(r reply) string {
	switch {
	case r.code == 550 && r.enhanced == "5.7.30":
		return " (basic auth disabled, use OAuth2: mechanism xoauth2)"
	case r.code == 534 || r.code == 538:
		return " (the server wants another mechanism, or an encrypted connection)"
	}
	return ""
}

// mechanism makes the client of an exchange, and says where the words of a
// server that refuses a token will be. What is secret in it is known to the scrubber.
func (m *Mailer) mechanism(secret string, scrub *scrubber) (client sasl.Client, said *string) {
	a, said := &m.settings.auth, new(string)
	switch a.mechanism {
	case authPlain:
		client = sasl.NewPlainClient("", a.user, secret)
	case authLogin:
		client = &login{a.user, secret}
	case authXOAuth2:
		client = &bearer{
			mechanism: "XOAUTH2", first: "user=" + a.user + "\x01auth=Bearer " + secret + "\x01\x01", said: said,
		}
	case authOAuthBearer:
		_, first, _ := sasl.NewOAuthBearerClient(&sasl.OAuthBearerOptions{
			Username: a.user, Token: secret, Host: m.settings.host, Port: m.settings.port,
		}).Start()
		client = &bearer{mechanism: sasl.OAuthBearer, first: string(first), last: "\x01", said: said}
	}
	scrub.Add(secret)
	if _, first, err := client.Start(); err == nil {
		scrub.AddWhole(string(first), base64.StdEncoding.EncodeToString(first), base64.RawStdEncoding.EncodeToString(first))
	}
	return client, said
}

// login is the mechanism LOGIN, which has no standard: servers differ in what
// they call the two things that they ask for, but not in their order.
type login struct{ user, password string }

func (l *login) Start() (mechanism string, first []byte, err error) { return "LOGIN", nil, nil }

func (l *login) Next([]byte) ([]byte, error) {
	answer := l.user
	if l.user == "" && l.password == "" {
		return nil, errors.New("the server asks for more than user and password")
	}
	if l.user = ""; answer == "" {
		answer, l.password = l.password, ""
	}
	return []byte(answer), nil
}

// bearer is a mechanism that sends a token. A server that refuses it first
// says why, and wants an answer to that before its reply comes.
type bearer struct {
	mechanism, first, last string
	said                   *string
}

func (b *bearer) Start() (mechanism string, first []byte, err error) {
	return b.mechanism, []byte(b.first), nil
}

func (b *bearer) Next(challenge []byte) ([]byte, error) {
	if *b.said != "" {
		return nil, errors.New("the server asks for more than a token")
	}
	*b.said = "it says " + string(challenge)
	return []byte(b.last), nil
}
