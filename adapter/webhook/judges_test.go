package webhook_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
)

// signedRequest is a request with signatures of both kinds, as a receiver got it.
func signedRequest(t *testing.T, mode webhook.Mode) hit {
	t.Helper()
	r := receive(t, answer(204, ""))
	target := webhook.Target{URL: r.URL, Mode: mode, Secrets: []webhook.Secret{{Value: second}, {Value: pair}, {Value: first}}}
	if _, err := delivererTo(t, target).Deliver(t.Context(), holdfast.Message{ID: holdfast.NewID(), Payload: []byte(odd)}); err != nil {
		t.Fatal(err)
	}
	return r.got()[0]
}

func publicHalf(t *testing.T) string {
	t.Helper()
	signer, err := standardwebhooks.NewSigner(pair)
	if err != nil {
		t.Fatal(err)
	}
	return signer.Public()
}

// run returns what a program says about some input.
func run(t *testing.T, input []byte, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out, faults bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &faults
	if err := cmd.Run(); err != nil {
		t.Logf("%s: %v: %s", name, err, faults.String())
	}
	return strings.TrimSpace(out.String())
}

// Programs that we did not write accept both kinds of signatures, while secrets are being replaced
// too, and no other body.
func TestOthersVerifyOurSignatures(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("there is no Node.js")
	}
	library, want := os.Getenv("TEST_STANDARDWEBHOOKS"), "standardwebhooks node:crypto"
	if library == "" {
		t.Log("TEST_STANDARDWEBHOOKS does not name the library of Standard Webhooks, which scripts/test installs: v1 is not judged")
		want = "node:crypto"
	}
	for _, mode := range []webhook.Mode{webhook.Plain, webhook.Structured} {
		h := signedRequest(t, mode)
		headers := map[string]string{}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			headers[name] = h.header.Get(name)
		}
		for body, want := range map[string]string{h.body: want, h.body + " ": ""} {
			input, err := json.Marshal(map[string]any{"headers": headers, "body": []byte(body), "whsec": first, "whpk": publicHalf(t)})
			if err != nil {
				t.Fatal(err)
			}
			if got := run(t, input, "node", filepath.Join("testdata", "judge.cjs"), library); got != want {
				t.Errorf("%s: %q agreed, want %q", mode, got, want)
			}
		}
	}
}

// The same of openssl, for v1a.
func TestOpenSSLVerifiesOurSignatures(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(publicHalf(t), "whpk_"))
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(ed25519.PublicKey(raw))
	if err != nil {
		t.Fatal(err)
	}
	h := signedRequest(t, webhook.Plain)
	_, rest, _ := strings.Cut(h.header.Get("webhook-signature"), "v1a,")
	text, _, _ := strings.Cut(rest, " ")
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	content := h.header.Get("webhook-id") + "." + h.header.Get("webhook-timestamp") + "." + h.body
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"key.pem": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "signature": signature, "content": []byte(content), "other": []byte(content + " "),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"content": "Signature Verified Successfully", "other": "Signature Verification Failure"} {
		got := run(t, nil, "openssl", "pkeyutl", "-verify", "-pubin", "-rawin", "-inkey", filepath.Join(dir, "key.pem"),
			"-sigfile", filepath.Join(dir, "signature"), "-in", filepath.Join(dir, name))
		if got != want {
			t.Errorf("%s: openssl says %q, want %q", name, got, want)
		}
	}
}
