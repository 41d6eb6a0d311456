package email

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// read returns the current value of a secret.
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

// authenticate proves who we are. If the settings use tokens, it does so with another token than
// the refused one.
func (m *Mailer) authenticate(ctx context.Context, s *session, refused string) (p proof, f *holdfast.Failure) {
	a := &m.settings.auth
	mechanism := strings.ToUpper(a.mechanism)
	offered, _ := s.client.Offers("AUTH")
	switch {
	case a.mechanism == authNone:
		return p, nil
	case s.tls == "" && !m.settings.allowInsecureAuth:
		return p, hold("auth_needs_tls", "AUTH: the connection is not encrypted, and credentials are not sent in clear unless allowInsecureAuth is set")
	case !slices.Contains(strings.Fields(strings.ToUpper(offered)), mechanism):
		if offered == "" {
			offered = "none"
		}
		return p, hold("auth_not_offered", fmt.Sprintf("AUTH: the server does not offer %s here; it offers %s", mechanism, clip(offered, 200)))
	}
	secret, f := m.credential(ctx, refused)
	if f != nil {
		return p, f
	}
	if m.tokens != nil {
		p.token = secret
	}
	says := m.speech(secret)
	s.scrub.Add(secret)
	if first := encoded(says.first); first != "" {
		s.scrub.AddWhole(string(says.first), first, strings.TrimRight(first, "="))
	}
	said, err := s.client.Auth(mechanism, says.first, says.next)
	r := reply{said}
	switch {
	case err != nil:
		return p, unconnected(ctx, "AUTH", err, &s.scrub)
	case r.OK():
		return p, nil
	case says.heard != "":
		r.Text += "; it says " + says.heard
	}
	r.Text += advice(r)
	p.refused = r.Permanent()
	return p, r.entry("AUTH", &s.scrub)
}

// credential returns the password or token that proves who we are.
func (m *Mailer) credential(ctx context.Context, refused string) (string, *holdfast.Failure) {
	if m.tokens == nil {
		secret, err := m.read(m.settings.passwordUse())
		if err != nil {
			return "", &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "secret", Err: err}
		}
		return secret, nil
	}
	t, err := m.tokens.Token(ctx, refused)
	if err != nil {
		f := holdfast.AsFailure(err)
		f.RetryAfter = min(f.RetryAfter, mostWait)
		return "", f
	}
	return t.Access, nil
}

// advice returns a hint where the server's own words do not help (E16).
func advice(r reply) string {
	switch {
	case r.Code == 550 && r.Enhanced == "5.7.30":
		return " (basic auth disabled, use OAuth2: mechanism xoauth2)"
	case r.Code == 534 || r.Code == 538:
		return " (the server wants another mechanism, or an encrypted connection)"
	}
	return ""
}
