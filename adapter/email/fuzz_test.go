package email_test

import (
	"net/mail"
	"strings"
	"testing"
	"testing/quick"

	"github.com/holdfast-mq/holdfast/adapter/email"
)

// Ids that differ have Message-IDs that differ, each of which is one.
func FuzzMessageIDs(f *testing.F) {
	for _, pair := range [][2]string{
		{"a.b", "a-b"},
		{"a:b", "a-b"},
		{"a,b", "a-b"},
		{"a@b", "a-b"},
		{"a b", "a-b"},
		{"a.b", "a:b"},
		{"a\x01b", "a b"},
		{"ä", "ö"},
		{"\xff", "\xfe"},
		{"", "-"},
		{strings.Repeat("a", 64), strings.Repeat("a", 65)},
		{strings.Repeat("a", 200) + "1", strings.Repeat("a", 200) + "2"},
		{email.Local("a.b"), "a.b"},
		{"..", "."},
		{"a", "A"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		one, other := email.Local(a), email.Local(b)
		if (one == other) != (a == b) || one != email.Local(a) {
			t.Errorf("%q and %q became %q and %q", a, b, one, other)
		}
		if address, err := mail.ParseAddress(one + "@x.test"); err != nil || address.Address != one+"@x.test" || len(one) > 100 || strings.ContainsAny(one, "\"[]") {
			t.Errorf("%q became %q: %v", a, one, err)
		}
	})
}

// An id that may stand in a Message-ID is read in it as it is.
func TestOrdinaryIDsStand(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11", "plant-7_press#4", "order/4711", "a=b+c"} {
		if got := email.Local(id); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	distinct := func(a, b string) bool { return (email.Local(a) == email.Local(b)) == (a == b) }
	if err := quick.Check(distinct, nil); err != nil {
		t.Error(err)
	}
	if got := email.Local("press 4: oil"); !strings.HasPrefix(got, "press-4--oil.") {
		t.Errorf("got %q", got)
	}
}

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
