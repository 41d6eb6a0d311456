package secrets_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

func setOf(all ...string) *secrets.Set {
	s := &secrets.Set{}
	s.Add(all...)
	return s
}

func TestASecretIsFoundInEachForm(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"sk-live-4eC39HqLyjWDarjtT1zdp7dc", `pa/ss w+rd"<é>&'`, "hunter2", "p@\\", "ab"} {
		inJSON, _ := json.Marshal(secret)
		for name, form := range map[string]string{
			"as it is": secret, "query": url.QueryEscape(secret), "path": url.PathEscape(secret), "user": url.UserPassword("u", secret).String(),
			"lower hex": regexp.MustCompile(`%..`).ReplaceAllStringFunc(url.QueryEscape(secret), strings.ToLower),
			"JSON":      string(inJSON), "Go": fmt.Sprintf("%q", secret), "Go in ASCII": fmt.Sprintf("%+q", secret), "HTML": html.EscapeString(secret),
			"base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(secret)),
			"base64 in a query": url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(secret))),
		} {
			got := setOf(secret).Clean("wrong key: " + form + ", try again")
			if strings.Contains(got, form) || !strings.Contains(got, secrets.Mark) || !strings.HasPrefix(got, "wrong key: ") || !strings.HasSuffix(got, "try again") {
				t.Errorf("%s of %q: got %q", name, secret, got)
			}
		}
	}
}

func TestPiecesAreHidden(t *testing.T) {
	t.Parallel()
	const secret = "abcdefghijklmnopqrstuvwxyz012345"
	s := setOf(secret)
	for text, want := range map[string]string{
		secret[:16]:                "[secret]",
		"x" + secret[10:27] + "y":  "x[secret]y",
		secret[:15]:                secret[:15],
		secret + secret:            "[secret]",
		secret[:20] + "é" + secret: "[secret]é[secret]",
		"nothing":                  "nothing",
		"":                         "",
	} {
		if got := s.Clean(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	// A short secret blots out nothing but itself.
	if got := setOf("ok").Clean("the token ok is broken: ok"); got != "the token [secret] is broken: [secret]" {
		t.Errorf("got %q", got)
	}
	if got := new(secrets.Set).Clean("all of it"); got != "all of it" {
		t.Errorf("got %q", got)
	}
}

// However a text is cut, no 16 bytes of a secret are shown, and its end is no
// beginning of one.
func TestTheStartOfATextEndsInNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "sk-live-4eC39HqLyjWDarjtT1zdp7dc"
	s := setOf(secret)
	text := strings.Repeat("é", 40) + strings.Repeat(" "+secret, 5)
	for cut := range text {
		got := s.CleanStart(text[:cut])
		if strings.Contains(got, secret[:3]) || !utf8.ValidString(got) {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
	if got := s.CleanStart(strings.Repeat("x", 500)); len(got) < 400 {
		t.Errorf("%d bytes are left", len(got))
	}
}

func TestWhatStandsInURLsAndHeaders(t *testing.T) {
	t.Parallel()
	s := &secrets.Set{}
	s.AddURL("https://shop:pass%2Fword@erp.example/orders?plant=hamburg&api_key=hunter2&x=0123456789abcdef")
	s.AddURL("http://%zz")
	s.AddHeader("Token abcdefgh")
	got := s.Clean("pass/word of shop at erp.example/orders for hamburg: hunter2, 0123456789abcdef, abcdefgh, " + base64.StdEncoding.EncodeToString([]byte("shop:pass/word")))
	if want := "[secret] of shop at erp.example/orders for hamburg: [secret], [secret], [secret], [secret]"; strings.TrimRight(got, "=") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnErrorKeepsWhatItIs(t *testing.T) {
	t.Parallel()
	err := setOf("hunter2").Error(fmt.Errorf("say hunter2: %w", context.Canceled))
	if err.Error() != "say [secret]: context canceled" || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := setOf("hunter2").Error(context.Canceled); got != context.Canceled { //nolint:errorlint // the very same
		t.Errorf("got %v", got)
	}
	if setOf("hunter2").Error(nil) != nil {
		t.Error("an error came of nothing")
	}
}

// What stands before a secret shifts its base64, as a user's name does in
// AUTH PLAIN; a server may have cut it besides.
func TestPiecesOfShiftedBase64AreHidden(t *testing.T) {
	t.Parallel()
	for _, size := range []int{40, 600, 2000} {
		var text strings.Builder
		for text.Len() < size {
			text.WriteString(rand.Text())
		}
		secret := text.String()[:size]
		s := setOf(secret)
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			for before := range 5 {
				form := encoding.EncodeToString([]byte("user:"[:before] + secret + "\x01\x01"))
				for n := 32; n < len(form); n += 1 + size/8 {
					if left := strings.ReplaceAll(s.Clean(form[:n]), secrets.Mark, ""); len(left) >= 16 { // what is not the secret's alone is not known
						t.Fatalf("%d bytes of base64 behind %d others: %q is left", n, before, left)
					}
				}
			}
		}
	}
}

func TestTheWholeAloneIsHidden(t *testing.T) {
	t.Parallel()
	var s secrets.Set
	s.AddWhole("https://chat.plant.example/hooks/1", "")
	for text, want := range map[string]string{
		"chat.plant.example is up":               "chat.plant.example is up",
		"at https://chat.plant.example/hooks/1?": "at [secret]?",
	} {
		if got := s.Clean(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
