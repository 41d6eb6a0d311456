package email_test

import (
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/adapter/email"
)

// Whatever is taken for an address can stand in an envelope, and is taken for
// itself.
func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"a@x.test", "jürgen@bücher.example", `"a b"@x.test`, "a@[IPv6:::1]", "<a@x.test>", "a@x.test (b)", "=?utf-8?q?a?= <a@x.test>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := email.ParseAddress(s)
		if err != nil {
			return
		}
		if strings.ContainsAny(got, "\r\n\t\x00 <>\"") || strings.Count(got, "@") != 1 {
			t.Errorf("%q became %q", s, got)
		}
		if again, err := email.ParseAddress(got); again != got || err != nil {
			t.Errorf("%q became %q, and that %q: %v", s, got, again, err)
		}
	})
}
