package email_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/adapter/email"
	"github.com/holdfast-mq/holdfast/notify"
)

// F1-04: who decides about secrets is asked for each host that gets it, or a
// token that was made of it.
func TestEachSecretIsAskedForWithItsHosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		auth object
		want []string
	}{
		"password": {object{"mechanism": "plain", "user": "u", "password": named("smtp")}, []string{"smtp email mail.test"}},
		"grant": {
			object{"mechanism": "xoauth2", "user": "u", "oauth2": object{"url": "https://login.test:8443/token", "client": "c", "secret": named("grant")}},
			[]string{"grant email login.test", "grant email mail.test"},
		},
	} {
		var asked []string
		_, err := email.New(encode(t, with(object{"host": "mail.test", "tls": "implicit", "auth": c.auth})), email.Options{
			Secret: secrets(nil),
			MayUse: func(u notify.SecretUse) error {
				asked = append(asked, u.Secret+" "+u.Kind+" "+u.Host)
				return errors.New("must not be used so")
			},
		})
		if diff := cmp.Diff(c.want, asked); diff != "" || err == nil {
			t.Errorf("%s: got %v (-want +got):\n%s", name, err, diff)
		}
	}
}
