package chat

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
	"github.com/holdfast-mq/holdfast/notify"
)

// target is where the request for one recipient goes, with the current secrets.
type target struct {
	url    *url.URL
	topic  string                    // ntfy
	header http.Header               // authorizes the request
	sign   []standardwebhooks.Signer // webhook only
	hidden secrets.Set               // must appear in no text
}

// target looks up the target for an address. A permanent failure is the recipient's; a lane fault
// is the target's.
func (p *Poster) target(address string) (target, *holdfast.Failure) {
	t, s := target{header: http.Header{}}, &p.settings
	if err := CheckAddress(p.kind, address); err != nil {
		return t, &holdfast.Failure{Outcome: holdfast.Permanent, Code: "bad_address", Err: err}
	}
	from := s.place
	switch {
	case p.kind == ntfy:
		if t.topic = address; address == "" {
			t.topic = s.topic
		}
		if t.topic == "" {
			return t, refusal("no_topic", "the recipient has no address, and the channel has no topic of its own")
		}
	case address != "":
		if _, ok := s.targets[address]; !ok {
			return t, refusal("no_target", "the channel has no target %q: name one of its targets, or none", address)
		}
		from = s.targetOf(p.kind, address)
	case from.url == "" && from.urlSecret == "" || p.kind == gotify && from.token == "":
		return t, refusal("no_target", "the recipient has no address, and the channel has no target but those of its targets")
	}
	return t, p.fill(&t, &from)
}

func refusal(code, format string, args ...any) *holdfast.Failure {
	return &holdfast.Failure{Outcome: holdfast.Permanent, Code: code, Err: fmt.Errorf(format, args...)}
}

// fill reads the secrets of a target.
func (p *Poster) fill(t *target, from *place) *holdfast.Failure {
	fault := func(code string, err error) *holdfast.Failure {
		return &holdfast.Failure{Outcome: holdfast.LaneFault, Code: code, Err: err}
	}
	text := from.url
	if from.urlSecret != "" {
		var err error
		if text, err = p.read(from.use(p.kind, from.urlSecret, nil)); err != nil {
			return fault("secret", err)
		}
	}
	var err error
	if t.url, err = parseURL(text, p.settings.insecure); err != nil {
		return fault("bad_url", fmt.Errorf("the URL in secret %s %w", from.urlSecret, err))
	}
	if from.urlSecret != "" {
		t.hideURL(text)
		if p.mayUse != nil { // the host is known now
			if err := p.mayUse(from.use(p.kind, from.urlSecret, t.url)); err != nil {
				return fault("secret", err)
			}
		}
	}
	if p.kind == gotify {
		t.url = t.url.JoinPath("message")
	}
	for _, name := range from.signing {
		secret, err := p.read(from.use(p.kind, name, t.url))
		if err != nil {
			return fault("secret", err)
		}
		signer, err := standardwebhooks.NewSigner(secret)
		if err != nil {
			return fault("bad_secret", fmt.Errorf("secret %s cannot sign: %w", name, err))
		}
		t.sign = append(t.sign, signer)
		t.hide(secret)
	}
	if err := p.authorize(t, from); err != nil {
		return fault("secret", err)
	}
	return nil
}

// authorize adds the header that authorizes the request.
func (p *Poster) authorize(t *target, from *place) error {
	if name := from.token; name != "" {
		token, err := p.read(from.use(p.kind, name, t.url))
		if err != nil {
			return err
		}
		t.hide(token)
		if p.kind == gotify {
			t.header.Set("X-Gotify-Key", token)
		} else {
			t.header.Set("Authorization", "Bearer "+token)
		}
	}
	if user := p.settings.user; user != "" {
		password, err := p.read(from.use(p.kind, p.settings.password, t.url))
		if err != nil {
			return err
		}
		both := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		t.hide(password, both)
		t.header.Set("Authorization", "Basic "+both)
	}
	return nil
}

// read returns a secret. Spaces and line ends around it, as editors and pipes leave them, are
// removed (H10).
func (p *Poster) read(use notify.SecretUse) (string, error) {
	name := use.Secret
	raw, err := p.secret(use)
	if err != nil {
		return "", fmt.Errorf("read secret %s: %s", name, clip(err.Error(), 500))
	}
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "":
		return "", fmt.Errorf("secret %s is empty", name)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", fmt.Errorf("secret %s has more than one line, or a control character", name)
	}
	return text, nil
}

// hide notes secrets to be redacted. Very short ones are left out: they would redact half of every
// text.
func (t *target) hide(secrets ...string) {
	for _, s := range secrets {
		if len(s) >= 4 {
			t.hidden.Add(s)
		}
	}
}

// hideURL notes a URL whose parts are secret. The other side knows the parts, and may quote only
// one of them.
func (t *target) hideURL(text string) {
	t.hidden.AddWhole(text, t.url.String()) // the host alone may be shown
	t.hide(t.url.RequestURI(), t.url.EscapedPath(), t.url.Path, t.url.RawQuery)
	if password, ok := t.url.User.Password(); ok {
		user := t.url.User.Username()
		t.hide(user, password, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	}
	for label := range strings.SplitSeq(t.url.Hostname(), ".") {
		if len(label) >= 8 && strings.ContainsAny(label, "0123456789") {
			t.hide(label) // some services put the secret into the host name
		}
	}
	parts := strings.Split(t.url.EscapedPath(), "/")
	parts = append(parts, strings.Split(t.url.Path, "/")...)
	for _, values := range t.url.Query() {
		parts = append(parts, values...)
	}
	parts = append(parts, strings.FieldsFunc(t.url.RawQuery, func(r rune) bool { return r == '&' || r == '=' })...)
	for _, part := range parts {
		if len(part) >= 8 {
			t.hide(part)
		}
	}
}

// redact removes secrets from text that is shown. Call it on the whole text, before it is
// shortened.
func (t *target) redact(s string) string { return t.hidden.Clean(s) }
