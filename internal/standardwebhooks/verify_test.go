package standardwebhooks_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
)

// The vector for v1a that the server of Svix and the libraries share.
const (
	private    = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	public     = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	signatureA = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
)

const tolerance = 5 * time.Minute

func verifier(t *testing.T, secret string) standardwebhooks.Verifier {
	t.Helper()
	v, err := standardwebhooks.NewVerifier(secret)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func request(id, seconds, signature string) http.Header {
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", seconds)
	h.Set("webhook-signature", signature)
	return h
}

func TestThePublishedVectorOfAKeyPair(t *testing.T) {
	t.Parallel()
	seed := "whsk_" + base64.StdEncoding.EncodeToString(decode(t, private)[:ed25519.SeedSize])
	for _, secret := range []string{private, seed} {
		s, h := signer(t, secret), http.Header{}
		standardwebhooks.Sign(h, id, time.Unix(sentAt, 0), []byte(body), s)
		if got := h.Get("webhook-signature"); got != signatureA {
			t.Errorf("got %q, want %q", got, signatureA)
		}
		if got := s.Public(); got != public {
			t.Errorf("public key: got %q, want %q", got, public)
		}
	}
	if got := signer(t, secret).Public(); got != "" {
		t.Errorf("a shared secret shows %q as its public half", got)
	}
}

func decode(t *testing.T, secret string) []byte {
	t.Helper()
	_, text, _ := strings.Cut(secret, "_")
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestWhatVerifies(t *testing.T) {
	t.Parallel()
	now := time.Unix(sentAt, 0)
	for name, c := range map[string]struct {
		secret string
		header http.Header
		body   string
		now    time.Time
		want   error
	}{
		"v1":                               {header: request(id, "1614265330", signature)},
		"v1a":                              {secret: public, header: request(id, "1614265330", signatureA)},
		"one of several":                   {header: request(id, "1614265330", "v1,AAAA v9,?? "+signatureA+" "+signature)},
		"late within tolerance":            {header: request(id, "1614265330", signature), now: now.Add(tolerance)},
		"early within tolerance":           {header: request(id, "1614265330", signature), now: now.Add(-tolerance)},
		"late":                             {header: request(id, "1614265330", signature), now: now.Add(tolerance + 1), want: standardwebhooks.ErrTime},
		"early":                            {header: request(id, "1614265330", signature), now: now.Add(-tolerance - 1), want: standardwebhooks.ErrTime},
		"the end of time":                  {header: request(id, "9223372036854775807", signature), want: standardwebhooks.ErrTime},
		"another body":                     {header: request(id, "1614265330", signature), body: body + " ", want: standardwebhooks.ErrForged},
		"another id":                       {header: request(id+"x", "1614265330", signature), want: standardwebhooks.ErrForged},
		"another time":                     {header: request(id, "1614265331", signature), want: standardwebhooks.ErrForged},
		"another pair":                     {secret: "whpk_" + base64.StdEncoding.EncodeToString(make([]byte, 32)), header: request(id, "1614265330", signatureA), want: standardwebhooks.ErrForged},
		"v1 as v1a":                        {header: request(id, "1614265330", "v1a"+signature[2:]), want: standardwebhooks.ErrForged},
		"the public key as the shared one": {secret: public, header: signedBy(t, "whsec_"+strings.TrimPrefix(public, "whpk_")), want: standardwebhooks.ErrForged},
		"after too many":                   {header: request(id, "1614265330", strings.Repeat("v1,AAAA ", 16)+signature), want: standardwebhooks.ErrForged},
		"no id":                            {header: request("", "1614265330", signature), want: standardwebhooks.ErrHeaders},
		"no time":                          {header: request(id, "now", signature), want: standardwebhooks.ErrHeaders},
		"no signature":                     {header: request(id, "1614265330", ""), want: standardwebhooks.ErrHeaders},
		"two ids":                          {header: http.Header{"Webhook-Id": {id, id}, "Webhook-Timestamp": {"1614265330"}, "Webhook-Signature": {signature}}, want: standardwebhooks.ErrHeaders},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.secret == "" {
				c.secret = secret
			}
			if c.body == "" {
				c.body = body
			}
			if c.now.IsZero() {
				c.now = now
			}
			got, err := standardwebhooks.Verify(c.header, []byte(c.body), c.now, tolerance, standardwebhooks.Verifier{}, verifier(t, c.secret))
			if !errors.Is(err, c.want) || (err == nil) != (got == id) {
				t.Errorf("got %q and error %v, want %v", got, err, c.want)
			}
		})
	}
}

func signedBy(t *testing.T, secret string) http.Header {
	t.Helper()
	h := http.Header{}
	standardwebhooks.Sign(h, id, time.Unix(sentAt, 0), []byte(body), signer(t, secret))
	return h
}

func TestAKeyOfAPairIsOnTheRightSide(t *testing.T) {
	t.Parallel()
	swapped := decode(t, private)
	swapped[63]++
	for name, bad := range map[string]string{
		"public half":     public,
		"no base64":       "whsk_hunter2",
		"short":           "whsk_" + base64.StdEncoding.EncodeToString(make([]byte, 31)),
		"two that differ": "whsk_" + base64.StdEncoding.EncodeToString(swapped),
	} {
		refused(t, name, bad, func() error { _, err := standardwebhooks.NewSigner(bad); return err })
	}
	for name, bad := range map[string]string{
		"private half": private,
		"no base64":    "whpk_hunter2",
		"long":         "whpk_" + base64.StdEncoding.EncodeToString(make([]byte, 33)),
		"short secret": "hunter2",
	} {
		refused(t, name, bad, func() error { _, err := standardwebhooks.NewVerifier(bad); return err })
	}
}

func refused(t *testing.T, name, secret string, use func() error) {
	t.Helper()
	_, text, _ := strings.Cut(secret, "_")
	switch err := use(); {
	case err == nil:
		t.Errorf("%s: taken as a key", name)
	case text != "" && strings.Contains(err.Error(), text):
		t.Errorf("%s: the error shows the secret: %v", name, err)
	}
}
