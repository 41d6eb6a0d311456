package socket_test

import (
	"testing"

	"github.com/holdfast-mq/holdfast/internal/socket"
)

func TestPathsAndNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"unix:///run/a.sock":       "/run/a.sock",
		"unix:///run/with%20space": "/run/with space",
		"unix:///":                 "",
		"unix://":                  "",
		"unix:relative":            "",
		"unix://run/a.sock":        "",
		"unix://u@/run/a.sock":     "",
		"unix:///run/a.sock?b":     "",
		"unix:///run/a.sock?":      "",
		"unix:///run/a.sock#b":     "",
		"http:///run/a.sock":       "",
		"/run/a.sock":              "",
		"unix:///%zz":              "",
	} {
		if got, ok := socket.Parse(name); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %t; want %q", name, got, ok, want)
		}
	}
	for _, path := range []string{"/run/a.sock", "/tmp/with space?#%/ü"} {
		if got, ok := socket.Parse(socket.URL(path)); got != path || !ok {
			t.Errorf("%s becomes %s, and that %q", path, socket.URL(path), got)
		}
	}
}
