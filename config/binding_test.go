package config_test

import (
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/config"
)

// F1-04: a binding allows a kind and hosts, by whole names.
func TestABindingAllowsKindsAndHosts(t *testing.T) {
	t.Parallel()
	b := config.Binding{Kinds: []string{"email"}, Hosts: []string{"Mail.example.com", "*.plant.example", "192.0.2.1"}}
	for use, want := range map[string]bool{
		"email mail.example.com": true, "email MAIL.example.com.": true, "email a.plant.example": true, "email a.b.plant.example": true, "email 192.0.2.1": true,
		"email plant.example": false, "email .plant.example": false, "email evilplant.example": false, "email mail.example.com.evil.example": false,
		"ntfy mail.example.com": false, "email x": false, "email ": true, "ntfy ": false,
	} {
		kind, host, _ := strings.Cut(use, " ")
		if got := b.Allows(kind, host); got != want {
			t.Errorf("%s: got %t", use, got)
		}
	}
}

// F1-04: a binding that says nothing, or something else than it looks, is refused.
func TestFaultsOfBindings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{secrets: s, bindings: {smtp: {hosts: [h]}}}":                          "notifications.bindings.smtp.kinds: is missing",
		"{secrets: s, bindings: {smtp: {kinds: [mail]}}}":                       `notifications.bindings.smtp.kinds[0]: "mail" is not one of`,
		"{secrets: s, bindings: {smtp: {kinds: [email], hosts: ['*']}}}":        `notifications.bindings.smtp.hosts[0]: "*" is not a host`,
		"{secrets: s, bindings: {smtp: {kinds: [email], hosts: ['h:25']}}}":     `"h:25" is not a host`,
		"{secrets: s, bindings: {smtp: {kinds: [email], hosts: ['*h']}}}":       `"*h" is not a host`,
		"{secrets: s, bindings: {smtp: {kinds: [email], hosts: ['http://h']}}}": `"http://h" is not a host`,
		"{bindings: {smtp: {kinds: [email], hosts: [h]}}}":                      "needs a folder of secrets, but none is named",
		"{secrets: s, bindings: {smtp: {kinds: [email], hosts: ['::1', h]}}}":   "",
	} {
		_, _, err := config.Parse("f", []byte("notifications: "+text), world(nil), config.Overrides{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
