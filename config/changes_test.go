package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/node"
)

// F1-38: a reload names each setting that differs, and each secret that has
// another value, without the values.
func TestChangesNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	parse := func(text, secret string) *config.Config {
		t.Helper()
		env := config.Env{
			Kinds:  node.DestinationKinds(),
			Host:   func() (string, error) { return "here", nil },
			Lookup: func(name string) (string, bool) { return secret, name == "SECRET" || name == "OTHER" },
		}
		c, _, err := config.Parse("", []byte(text), env, config.Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const a, b = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
	const text = `
destinations:
  shop: {url: "http://127.0.0.1:1", secret: {env: SECRET}}
  api: {call: {url: "http://127.0.0.1:2", auth: {bearer: {env: SECRET}}}}
receive: {secrets: {till: {env: SECRET}}, endpoints: {E: {keep: true}}}
`
	for name, c := range map[string]struct {
		to     string
		secret string
		want   []string
	}{
		"nothing":  {text, a, nil},
		"secrets":  {text, b, []string{"destinations.api secret", "destinations.shop secret", "receive.secrets.till secret"}},
		"settings": {text + "poll: 2s\nlog: {level: debug}\n", a, []string{"log.level", "poll"}},
	} {
		got := parse(text, a).Changes(parse(c.to, c.secret))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	also := strings.Replace(text, "shop: {", "shop: {timeout: 7s, ", 1)
	want := map[string]string{"api": "destinations.api secret"}
	if diff := cmp.Diff(want, parse(text, a).Renewed(parse(also, b))); diff != "" {
		t.Errorf("of which nothing but secrets differs (-want +got):\n%s", diff)
	}
	if got := parse(text, a).Renewed(parse(also, a)); len(got) > 0 {
		t.Errorf("no secret differs, and got %v", got)
	}
	elsewhere := strings.Replace(text, "bearer: {env: SECRET}", "bearer: {env: OTHER}", 1)
	for name, secret := range map[string]string{"the same secret": a, "another secret": b} {
		got := parse(text, a).Renewed(parse(elsewhere, secret))
		if got["api"] != want["api"] {
			t.Errorf("%s that stands elsewhere: got %v", name, got)
		}
	}
	if got := parse(text, a).Renewed(parse(strings.Replace(text, "destinations:", "destinations:\n  new: {call: {url: \"http://127.0.0.1:3\", auth: {bearer: {env: SECRET}}}}", 1), a)); len(got) > 0 {
		t.Errorf("a new destination is none of which secrets differ, and got %v", got)
	}
}
