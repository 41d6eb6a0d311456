package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/chat"
)

// fields are those that an error finds fault with.
func fields(err error) (list []string) {
	if err == nil {
		return nil
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			list = append(list, fields(e)...)
		}
		slices.Sort(list)
		return list
	}
	if f, ok := errors.AsType[*holdfast.FieldError](err); ok {
		if key, ok := strings.CutPrefix(f.Field, "settings."); ok {
			return []string{key}
		}
		return []string{f.Field + " as a whole"}
	}
	return []string{"not a field: " + err.Error()}
}

func manyTargets() string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, `,"t%d":{"url":{"secret":"a"}}`, i)
	}
	return b.String()
}

// Every fault is reported at once, with its place, and without what may be a
// secret that somebody wrote into the settings.
func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	const s = "hunter2hunter2"
	for name, c := range map[string]struct {
		kind, settings string
		want           []string
	}{
		"webhook":             {"webhook", `{"url":"https://h.example/x","signing":[{"secret":"a"},{"secret":"b"}],"timeout":"10s"}`, nil},
		"webhook, targets":    {"webhook", `{"targets":{"a":{"url":{"secret":"a"},"signing":[{"secret":"b"}]}}}`, nil},
		"teams":               {"teams", `{"url":{"secret":"t"},"ca":""}`, nil},
		"slack":               {"slack", `{"targets":{"a.b-c_1":{"url":{"secret":"a"}}}}`, nil},
		"ntfy":                {"ntfy", `{"url":"https://ntfy.sh","topic":"ops","user":"u","password":{"secret":"p"},"priority":5,"tags":["warning"]}`, nil},
		"gotify":              {"gotify", `{"url":"http://127.0.0.1:1","token":{"secret":"t"},"priority":0}`, nil},
		"gotify, targets":     {"gotify", `{"url":"http://push.example","insecure":true,"targets":{"a":{"token":{"secret":"t"}}}}`, nil},
		"loopback by name":    {"ntfy", `{"url":"http://localhost:8080"}`, nil},
		"nothing":             {"webhook", ``, []string{"url"}},
		"empty":               {"slack", `{}`, []string{"url"}},
		"null":                {"teams", `null`, []string{"url"}},
		"no object":           {"teams", `["` + s + `"]`, []string{"settings as a whole", "url"}},
		"no JSON":             {"gotify", `{"token":"` + s, []string{"settings as a whole", "token", "url"}},
		"a key twice":         {"slack", `{"url":{"secret":"a"},"url":{"secret":"b"}}`, []string{"settings as a whole", "url"}},
		"unknown keys":        {"slack", `{"url":{"secret":"a"},"tokn":"` + s + `","topic":"x"}`, []string{"tokn", "topic"}},
		"of another kind":     {"teams", `{"url":{"secret":"a"},"signing":[{"secret":"a"}],"priority":3}`, []string{"priority", "signing"}},
		"a secret as text":    {"gotify", `{"url":"https://g.example","token":"` + s + `"}`, []string{"token"}},
		"a URL that is one":   {"slack", `{"url":"https://hooks.slack.example/` + s + `"}`, []string{"url"}},
		"a URL with password": {"ntfy", `{"url":"https://u:` + s + `@n.example"}`, []string{"url"}},
		"a URL with a key":    {"ntfy", `{"url":"https://n.example?plant=7&api_key=` + s + `"}`, []string{"url"}}, // F1-17
		"a bad URL":           {"ntfy", `{"url":"https://%zz/` + s + `"}`, []string{"url"}},
		"another scheme":      {"webhook", `{"url":"ftp://h/` + s + `","signing":[{"secret":"a"}]}`, []string{"url"}},
		"open on the way":     {"webhook", `{"url":"http://h.example/` + s + `","signing":[{"secret":"a"}]}`, []string{"url"}},
		"not loopback":        {"ntfy", `{"url":"http://127.0.0.1.example"}`, []string{"url"}},
		"unsigned":            {"webhook", `{"url":"https://h.example"}`, []string{"signing"}},
		"a target unsigned":   {"webhook", `{"targets":{"a":{"url":"https://h.example"},"b":{"url":"https://h.example","signing":[{"secret":"a"}]}}}`, []string{"targets.a.signing"}},
		"signed by too many":  {"webhook", `{"url":"https://h.example","signing":[` + strings.Repeat(`{"secret":"a"},`, 4) + `{"secret":"a"}]}`, []string{"signing"}},
		"signed by text":      {"webhook", `{"url":"https://h.example","signing":[{"secret":"a"},"` + s + `"]}`, []string{"signing[1]"}},
		"ways out of a place": {"slack", `{"url":{"secret":"../etc/passwd"}}`, []string{"url"}},
		"a hidden file":       {"slack", `{"url":{"secret":".token"}}`, []string{"url"}},
		"more than a name":    {"slack", `{"url":{"secret":"a","text":"` + s + `"}}`, []string{"url"}},
		"a target's mistakes": {"slack", `{"targets":{"a b":{"url":{"secret":"a"}},"c":{},"d":{"url":{"secret":"a"},"token":"` + s + `"}}}`, []string{"targets.a b", "targets.c.url", "targets.d.token"}},
		"targets in a list":   {"slack", `{"targets":[{"url":{"secret":"a"}}]}`, []string{"targets"}},
		"too many targets":    {"slack", `{"targets":{"a":{}` + manyTargets() + `}}`, []string{"targets"}},
		"a target's token":    {"gotify", `{"url":"https://g.example","targets":{"a":{}}}`, []string{"targets.a.token"}},
		"two ways to log in":  {"ntfy", `{"url":"https://n.example","token":{"secret":"t"},"user":"u","password":{"secret":"p"}}`, []string{"user"}},
		"half a login":        {"ntfy", `{"url":"https://n.example","user":"u"}`, []string{"password"}},
		"a topic that is none": {
			"ntfy", `{"url":"https://n.example","topic":"a/b","priority":6,"tags":"x"}`, []string{"priority", "tags", "topic"},
		},
		"all at once": {
			"gotify", `{"url":7,"token":7,"priority":0.5,"timeout":"x","insecure":"no","ca":1,"cert":"c"}`,
			[]string{"ca", "cert", "insecure", "priority", "timeout", "token", "url"},
		},
		"a time that is none": {"slack", `{"url":{"secret":"a"},"timeout":"0s"}`, []string{"timeout"}},
		"a long time":         {"slack", `{"url":{"secret":"a"},"timeout":"3h"}`, []string{"timeout"}},
		"no such files":       {"slack", `{"url":{"secret":"a"},"ca":"/no/ca.pem","cert":"/no/c","key":"/no/k"}`, []string{"ca", "cert"}},
		"no such kind":        {"pager", `{}`, []string{"kind as a whole"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := chat.New(c.kind, json.RawMessage(c.settings), chat.Options{Secret: (&secrets{}).read})
			if diff := cmp.Diff(c.want, fields(err)); diff != "" {
				t.Errorf("got %v (-want +got):\n%s", err, diff)
			}
			if err != nil && (p != nil || strings.Contains(err.Error(), s)) {
				t.Errorf("got %v and the error %q", p, err)
			}
		})
	}
}

func TestANodeWithoutSecretsSaysSo(t *testing.T) {
	t.Parallel()
	_, err := chat.New("slack", json.RawMessage(`{"url":{"secret":"a"}}`), chat.Options{})
	if err == nil {
		t.Fatal("the settings were taken")
	}
	has(t, "error", err.Error(), "notifications.secrets")
}

func TestAddressesAreChecked(t *testing.T) {
	t.Parallel()
	for _, kind := range chat.Kinds() {
		for address, good := range map[string]bool{
			"": true, "ops": true, "a-b_C9": true, "a.b": kind != "ntfy", "a/b": false, "a b": false, "é": false, "..": false,
			strings.Repeat("a", 64): true, strings.Repeat("a", 65): false,
		} {
			if err := chat.CheckAddress(kind, address); (err == nil) != good {
				t.Errorf("%s %q: got %v", kind, address, err)
			}
		}
	}
}

// F1-07: who writes a channel does not learn which files the machine has, and a
// device does not hold it up.
func TestFilesOfSettingsTellNothingOfThemselves(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	other := filepath.Join(folder, "other")
	if err := os.WriteFile(other, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, path := range []string{other, filepath.Join(folder, "absent"), folder, "/dev/zero"} {
		settings := fmt.Sprintf(`{"url":{"secret":"a"},"ca":%q,"cert":%q,"key":%q}`, path, path, path)
		_, err := chat.New("slack", json.RawMessage(settings), chat.Options{Secret: (&secrets{}).read})
		if err == nil {
			t.Fatalf("%s was taken", path)
		}
		told[strings.ReplaceAll(err.Error(), path, "PATH")] = true
	}
	if len(told) != 1 {
		t.Errorf("got %d texts, want one for every cause: %v", len(told), told)
	}
}
