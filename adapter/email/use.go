package email

import (
	"errors"
	"net/url"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// kind is the kind of the channels of this package.
const kind = "email"

func (s *settings) passwordUse() notify.SecretUse {
	return notify.SecretUse{Secret: s.auth.password, Kind: kind, Host: s.host}
}

func (s *settings) grantUse() notify.SecretUse {
	use := notify.SecretUse{Secret: s.auth.grant.secret, Kind: kind}
	if u, err := url.Parse(s.auth.grant.url); err == nil {
		use.Host = u.Hostname()
	}
	return use
}

// checkUses reports which secrets the settings must not use as they do. A token that is fetched
// with a secret goes to the mail server and to nobody else.
func (s *settings) checkUses(mayUse func(notify.SecretUse) error) error {
	if mayUse == nil {
		return nil
	}
	var faults []error
	check := func(field string, u notify.SecretUse) {
		if u.Secret == "" {
			return
		}
		if err := mayUse(u); err != nil {
			faults = append(faults, &holdfast.FieldError{Field: "settings." + field, Value: u.Secret, Problem: err.Error()})
		}
	}
	check("auth.password", s.passwordUse())
	check("auth.oauth2.secret", s.grantUse())
	if grant := s.auth.grant.secret; grant != "" {
		check("auth.oauth2.secret", notify.SecretUse{Secret: grant, Kind: kind, Host: s.host})
	}
	return errors.Join(faults...)
}
