package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/config"
)

func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	s := config.NewSecret([]byte(key))
	wrapped := struct {
		Shown  config.Secret `json:"shown"`
		hidden config.Secret
		Far    *config.Secret `json:"far"`
	}{s, s, &s}
	var printed strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%c", "%U", "%o", "%t"} {
		fmt.Fprintf(&printed, verb+"\n", s)
		fmt.Fprintf(&printed, verb+"\n", &s)
		fmt.Fprintf(&printed, verb+"\n", wrapped)
		fmt.Fprintf(&printed, verb+"\n", []config.Secret{s})
		fmt.Fprintf(&printed, verb+"\n", map[string]config.Secret{"a": s})
	}
	asJSON, err := json.Marshal(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	printed.Write(asJSON)
	log := slog.New(slog.NewTextHandler(&printed, nil))
	log.Info("a", slog.Any("secret", s), slog.Any("wrapped", wrapped))
	log = slog.New(slog.NewJSONHandler(&printed, nil))
	log.Info("a", slog.Any("secret", s), slog.Any("wrapped", wrapped))
	c := config.Default()
	c.Destinations["a"] = config.Destination{Secret: s}
	printed.WriteString(string(c.YAML()))
	fmt.Fprintf(&printed, "%v %+v %#v", c, *c, c) // a Config holds secrets deep inside

	for form, leak := range map[string]string{
		"text": key, "hex": fmt.Sprintf("%x", key), "HEX": fmt.Sprintf("%X", key), "base64": good[:20],
		"numbers": "48 49 50 51", "Go": "0x30, 0x31, 0x32",
	} {
		if strings.Contains(printed.String(), leak) {
			t.Errorf("the secret is shown as %s:\n%s", form, printed.String())
		}
	}
	if got := s.String(); got != "[secret]" {
		t.Errorf("got %q, want [secret]", got)
	}
}

func TestSecretIsACopy(t *testing.T) {
	t.Parallel()
	in := []byte(key)
	s := config.NewSecret(in)
	in[0] = 'x'
	s.Bytes()[1] = 'x'
	if got := s.Bytes(); !bytes.Equal(got, []byte(key)) {
		t.Errorf("got %q, want %q", got, key)
	}
}

func TestSecretsAreEqualByTheirKeys(t *testing.T) {
	t.Parallel()
	a, b := config.NewSecret([]byte(key)), config.NewSecret([]byte(key))
	if !a.Equal(b) {
		t.Error("equal keys are told apart")
	}
	if a.Equal(config.NewSecret([]byte("other"))) || a.Equal(config.Secret{}) || !(config.Secret{}).Equal(config.Secret{}) {
		t.Error("other keys are not told apart")
	}
	if config.NewSecret(nil).IsZero() || !(config.Secret{}).IsZero() {
		t.Error("only the zero secret is zero")
	}
}

func TestSourcesSignWithOneOrSeveralSecrets(t *testing.T) {
	t.Parallel()
	c := parse(t, `
receive:
  secrets:
    one: {env: GOOD}
    rotated: [{env: GOOD}, {file: good.b64}]
    old: {hmac: v1, env: GOOD}
    old-rotated: {hmac: v1, secrets: [{env: GOOD}, {file: good.b64}]}
    new: {hmac: v2, secrets: [{env: GOOD}]}
`)
	s := config.NewSecret([]byte(key))
	want := map[string]config.Source{
		"one":         {HMAC: config.HMACv2, Secrets: []config.Secret{s}},
		"rotated":     {HMAC: config.HMACv2, Secrets: []config.Secret{s, s}},
		"old":         {HMAC: config.HMACv1, Secrets: []config.Secret{s}},
		"old-rotated": {HMAC: config.HMACv1, Secrets: []config.Secret{s, s}},
		"new":         {HMAC: config.HMACv2, Secrets: []config.Secret{s}},
	}
	if diff := cmp.Diff(want, c.Receive.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}
