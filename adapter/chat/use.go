package chat

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// use describes what a secret of a place is used for. A URL that is itself a secret is known only
// after it has been read.
func (p *place) use(kind, secret string, at *url.URL) notify.SecretUse {
	u := notify.SecretUse{Secret: secret, Kind: kind, URL: p.urlSecret}
	if at == nil && p.url != "" {
		at, _ = url.Parse(p.url) // already checked
	}
	if at != nil {
		u.Host = at.Hostname()
	}
	return u
}

// checkUses reports which secrets the settings must not use as they do, each with the path of the
// key that names it.
func (s *settings) checkUses(kind string, mayUse func(notify.SecretUse) error) error {
	if mayUse == nil {
		return nil
	}
	var faults []error
	check := func(path string, from *place, secret string) {
		if secret == "" {
			return
		}
		if err := mayUse(from.use(kind, secret, nil)); err != nil {
			faults = append(faults, &holdfast.FieldError{Field: "settings." + path, Value: secret, Problem: err.Error()})
		}
	}
	all := func(path string, p place) {
		check(path+"url", &p, p.urlSecret)
		check(path+"token", &p, p.token)
		for i, secret := range p.signing {
			check(fmt.Sprintf("%ssigning[%d]", path, i), &p, secret)
		}
	}
	if s.url != "" || s.urlSecret != "" {
		all("", s.place)
		check("password", &s.place, s.password)
	}
	for _, name := range slices.Sorted(maps.Keys(s.targets)) {
		all("targets."+name+".", s.targetOf(kind, name))
	}
	return errors.Join(faults...)
}

// targetOf returns one of the further targets, completed from the channel.
func (s *settings) targetOf(kind, name string) place {
	p := s.targets[name]
	if kind == gotify {
		p.url, p.urlSecret = s.url, s.urlSecret
	}
	if p.signing == nil {
		p.signing = s.signing
	}
	return p
}
