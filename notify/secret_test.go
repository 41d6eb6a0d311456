package notify_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

func TestGivenSecretsAreFoundWhereverTheyStand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings, want string
		fields         []string
	}{
		"none":       {`{"url":  "https://h", "n": 1.50}`, `{"url":  "https://h", "n": 1.50}`, nil},
		"a name":     {`{"url":{"secret":"slack"}}`, `{"url":{"secret":"slack"}}`, nil},
		"in objects": {`{"auth":{"password":{"secret":{"value":"hunter2"}},"n":1.50}}`, `{"auth":{"password":{"secret":"hunter2"},"n":1.50}}`, []string{"settings.auth.password"}},
		"in lists":   {`{"signing":[{"secret":"a"},{"secret":{"sealed":"hf1.x"}}]}`, `{"signing":[{"secret":"a"},{"secret":"hf1.x"}]}`, []string{"settings.signing[1]"}},
		"of a target that is called so": {
			`{"targets":{"secret":{"url":{"secret":{"value":"v"}}}}}`, `{"targets":{"secret":{"url":{"secret":"v"}}}}`, []string{"settings.targets.secret.url"},
		},
		"both, left to the adapter": {`{"url":{"secret":{"value":"v","sealed":"s"}}}`, `{"url":{"secret":{"value":"v","sealed":"s"}}}`, nil},
		"a number":                  {`{"url":{"secret":{"value":7}}}`, `{"url":{"secret":{"value":7}}}`, nil},
		"a value that says secret":  {`{"a":"secret","b":{"value":"v"}}`, `{"a":"secret","b":{"value":"v"}}`, nil},
	} {
		var fields []string
		got, err := notify.EachSecret(json.RawMessage(c.settings), func(field string, s notify.GivenSecret) (any, error) {
			fields = append(fields, field)
			return s.Value + s.Sealed, nil
		})
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, c.want)
		}
		if diff := cmp.Diff(c.fields, fields); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", name, diff)
		}
	}
}

func TestAFaultOfAGivenSecretNamesItsFieldAndNothingElse(t *testing.T) {
	t.Parallel()
	for settings, field := range map[string]string{
		`{"auth":{"password":{"secret":{"value":"hunter2"}}}}`: "settings.auth.password",
		`{"url":{"secret":{"value":"hunter2"`:                  "settings",
		`{"url":{"secret":{"value":"hunter2","value":"x"}}}`:   "settings",
	} {
		_, err := notify.EachSecret(json.RawMessage(settings), func(string, notify.GivenSecret) (any, error) { return nil, errors.New("refused") })
		f, ok := errors.AsType[*holdfast.FieldError](err)
		if !ok || f.Field != field || f.Value != "" {
			t.Errorf("%s: got %v", settings, err)
		}
	}
}
