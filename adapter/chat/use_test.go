package chat_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/adapter/chat"
	"github.com/holdfast-mq/holdfast/notify"
)

// F1-04: who decides about secrets is asked for each, with the kind and the host
// that would get it.
func TestEachSecretIsAskedForWithItsHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, settings string
		fields, want   []string
	}{
		"ntfy":         {"ntfy", `{"url":"https://ntfy.example:8443","topic":"ops","user":"u","password":{"secret":"p"}}`, []string{"password"}, []string{"p ntfy ntfy.example "}},
		"ntfy, hidden": {"ntfy", `{"url":{"secret":"u"},"token":{"secret":"t"}}`, []string{"token", "url"}, []string{"u ntfy  u", "t ntfy  u"}},
		"slack":        {"slack", `{"url":{"secret":"s"}}`, []string{"url"}, []string{"s slack  s"}},
		"gotify": {
			"gotify", `{"url":"https://g.example","token":{"secret":"t"},"targets":{"a":{"token":{"secret":"b"}}}}`,
			[]string{"targets.a.token", "token"},
			[]string{"t gotify g.example ", "b gotify g.example "},
		},
		"webhook": {
			"webhook", `{"url":"https://h.example/x","signing":[{"secret":"a"}],"targets":{"b":{"url":"https://[::1]/x"}}}`,
			[]string{"signing[0]", "targets.b.signing[0]"},
			[]string{"a webhook h.example ", "a webhook ::1 "},
		},
	} {
		var asked []string
		_, err := chat.New(c.kind, json.RawMessage(c.settings), chat.Options{Secret: (&secrets{}).read, MayUse: func(u notify.SecretUse) error {
			asked = append(asked, strings.Join([]string{u.Secret, u.Kind, u.Host, u.URL}, " "))
			return errors.New("must not be used so")
		}})
		if diff := cmp.Diff(c.fields, fields(err)); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.want, asked); diff != "" {
			t.Errorf("%s: uses (-want +got):\n%s", name, diff)
		}
	}
}
