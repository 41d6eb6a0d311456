package secrets_test

import (
	"net/http"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// F1-17: of a URL that is shown, people see where it leads, and nothing by
// which it lets in.
func TestAURLIsShownWithoutWhatMayBeSecret(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://erp.example/api/{endpoint}":               "https://erp.example/api/{endpoint}",
		"https://erp.example/a@b":                          "https://erp.example/a@b",
		"https://u:hunter2@erp.example:8/x":                "https://[secret]@erp.example:8/x",
		"https://hunter2@erp.example":                      "https://[secret]@erp.example",
		"https://h?key=hunter2&plant=7&of={id}&empty=":     "https://h?key=[secret]&plant=[secret]&of={id}&empty=",
		"https://h/x?hunter2":                              "https://h/x?[secret]",
		"https://h/x?a=hunter2#hunter2":                    "https://h/x?a=[secret]#[secret]",
		"https://h/x?a={id}hunter2{id}":                    "https://h/x?a=[secret]",
		"u:hunter2@h":                                      "[secret]@h",
		"https://u:hun/ter2@[":                             "https://[secret]@[",
		"unix:///run/holdfast.sock":                        "unix:///run/holdfast.sock",
		"unix://u:hunter2@/run/holdfast.sock?token=hunter": "unix://[secret]@/run/holdfast.sock?token=[secret]",
		"": "",
	} {
		if got := secrets.URL(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// F1-17: a header is no secret only where it is known to be none; short values
// stay in what a target says, which nobody could read otherwise.
func TestHeadersThatMayCarryASecret(t *testing.T) {
	t.Parallel()
	var s secrets.Set
	s.AddHeaders(http.Header{
		"X-Api-Key": {"hunter2"}, "X-Passphrase": {"open"}, "X-Customer": {"sk-live-4eC39HqLyjWDarjtT1zdp7dc"},
		"X-Plant": {"hamburg"}, "Content-Type": {"application/vnd.plant+json"},
	})
	got := s.Clean("hunter2 open sk-live-4eC39HqLyjWDarjtT1zdp7dc hamburg application/vnd.plant+json")
	if want := "[secret] [secret] [secret] hamburg application/vnd.plant+json"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !secrets.Plain("content-type") || secrets.Plain("X-Api-Key") || secrets.Plain("X-Plant") {
		t.Error("another header is taken for plain")
	}
}
