package admin

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestErrorsOfOneCauseLookAlike(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                   "",
		"connection refused": "connection refused",
		"dial tcp 10.0.0.7:443: connect: connection refused": "dial tcp ‹address›: connect: connection refused",
		"dial tcp [2001:db8::1]:443: i/o timeout":            "dial tcp ‹address›: i/o timeout",
		"order 4711 is unknown":                              "order ‹n› is unknown",
		"order A-4711 is unknown":                            "order A-‹n› is unknown",
		"row 018f2d3e-5b6a-7c8d-9e0f-a1b2c3d4e5f6 is locked": "row ‹id› is locked",
		"commit 9f86d081884c7d65 failed":                     "commit ‹id› failed",
		`field "name" of 'Anna' is wrong, can't use it`:      "field ‹text› of ‹text› is wrong, can't use it",
		"mailbox anna@example.com: unknown":                  "mailbox ‹address›: unknown",
		"GET https://erp.example.com/orders/7?x=1: 503":      "GET ‹address›: ‹n›",
		"POST http://[::1]:80/x failed":                      "POST ‹address› failed",
		"an open \"quote":                                    "an open \"quote",
		"  spaces\tand\nlines  ":                             "spaces and lines",
		"took 1.5s, limit=30":                                "took ‹n›.‹n›s, limit=‹n›",
		`user='jane' or [key:'a b'] can't`:                   "user=‹text› or [key:‹text›] can't",
		"ERROR: duplicate key (SQLSTATE 23505)":              "ERROR: duplicate key (SQLSTATE 23505)",
		"sqlstate_40001 refused, status: 404, order_40001":   "sqlstate_40001 refused, status: 404, order_‹n›",
		"x-404-not-found":                                    "x-‹n›-not-found",
		`{"user": "jane", "why":"closed", "k7":1}`:           `{"user": ‹text›, "why":‹text›, "k‹n›":‹n›}`,
		`Post "https://a.example/7": EOF`:                    "Post ‹text›: EOF",
		"id 01ARZ3NDEKTSV4RRFFQ69G5FAV, key 3Kf9aZ2x1":       "id ‹id›, key ‹id›",
		`500: "jane has ` + strings.Repeat("x ", 600) + `"`:  "‹n›: ‹text›",
		"Größe ٣٤ zu groß":                                   "Größe ‹n› zu groß",
	} {
		if got := mask(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if a, b := causeOf("a", "c", "order 1"), causeOf("a", "c", "order 22"); a != b {
		t.Errorf("one cause has two names: %s and %s", a, b)
	}
	if long := strings.Repeat(" is locked", 90); mask("order 1"+long) != mask("order 4711"+long) {
		t.Error("the length of a number makes another cause of a long error")
	}
	if a, b := causeOf("a", "c", "order 1"), causeOf("b", "c", "order 1"); a == b {
		t.Error("two destinations have one cause")
	}
}

// Whatever the text, the mask is short and has no number, and another number makes no other cause.
func FuzzMask(f *testing.F) {
	for _, seed := range []string{"dial tcp 10.0.0.7:443: refused", `"a" 'b' “c”`, "a@b 0x1f ‹n›", "\xff\xfe1", strings.Repeat("9 ", 400)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if slices.ContainsFunc([]string{"sqlstate", "status", "code", "errno"}, func(name string) bool { return strings.Contains(strings.ToLower(text), name) }) {
			return // its number stays
		}
		got := mask(text)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsNumber) || len(got) > mostMasked {
			t.Fatalf("%q is masked as %q", text, got)
		}
		if again := mask(strings.ReplaceAll(text, "7", "8")); again != got {
			t.Fatalf("%q is masked as %q, and with another number as %q", text, got, again)
		}
	})
}
