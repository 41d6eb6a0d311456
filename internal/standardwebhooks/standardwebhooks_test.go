package standardwebhooks_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
)

// The vector that the libraries of Standard Webhooks share.
const (
	secret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	id        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	sentAt    = 1614265330
	body      = `{"test": 2432232314}`
	signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func signer(t *testing.T, secret string) standardwebhooks.Signer {
	t.Helper()
	k, err := standardwebhooks.NewSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestThePublishedVector(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	standardwebhooks.Sign(h, id, time.Unix(sentAt, 999), []byte(body), signer(t, secret))
	for name, want := range map[string]string{"webhook-id": id, "webhook-timestamp": "1614265330", "webhook-signature": signature} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// H11: while a secret is being replaced, both sign, the newest first.
func TestEachKeySigns(t *testing.T) {
	t.Parallel()
	raw := "a secret as it was typed, é"
	h := http.Header{}
	standardwebhooks.Sign(h, id, time.Unix(sentAt, 0), []byte(body), signer(t, raw), signer(t, secret))
	mac := hmac.New(sha256.New, []byte(raw))
	mac.Write([]byte(id + ".1614265330." + body))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)) + " " + signature
	if got := h.Get("webhook-signature"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestASecretThatCannotSignIsRefusedAndNotShown(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "hunter2", "whsec_", "whsec_hunter2", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23))} {
		_, err := standardwebhooks.NewSigner(bad)
		switch text, _ := strings.CutPrefix(bad, "whsec_"); {
		case err == nil:
			t.Errorf("%q was taken as a key", bad)
		case text != "" && strings.Contains(err.Error(), text):
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

// F1-70: a secret is what each library of the standard makes of it.
func TestTheMarkIsNotNeeded(t *testing.T) {
	t.Parallel()
	for text, bytes := range map[string]string{
		strings.TrimPrefix(secret, "whsec_"): secret,
		"no base64, but long enough a text":  "",
		"abcdefghijklmnopqrstuvwxyz12":       "", // base64 of 21 bytes
	} {
		if bytes == "" {
			bytes = "whsec_" + base64.StdEncoding.EncodeToString([]byte(text))
		}
		got, want := http.Header{}, http.Header{}
		standardwebhooks.Sign(got, id, time.Unix(sentAt, 0), []byte(body), signer(t, text))
		standardwebhooks.Sign(want, id, time.Unix(sentAt, 0), []byte(body), signer(t, bytes))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: signs with another key (-want +got):\n%s", text, diff)
		}
	}
}
