package admin

import (
	"crypto/subtle"
	"fmt"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/keyring"
)

// showSecrets shows what signs and authorizes requests, with marks in the place of secrets.
func showSecrets(out *api.Subscription, s fanout.Settings) {
	for _, secret := range s.Secrets {
		out.Secrets = append(out.Secrets, api.SigningSecret{Mark: keyring.Mark(secret.Sealed), Until: instant(secret.Until)})
	}
	if a := s.Authorization; a != nil {
		out.Authorization = &api.Authorization{
			Kind: string(a.Kind), User: a.User, Header: a.Header, URL: a.URL, Client: a.Client, Scopes: a.Scopes, Secret: api.KeptSecret{Mark: keyring.Mark(a.Sealed)},
		}
	}
	if t := s.TLS; t != nil {
		out.TLS = &api.SubscriberTLS{CA: t.CA, Cert: t.Cert}
		if t.Sealed != "" {
			out.TLS.Key = &api.KeptSecret{Mark: keyring.Mark(t.Sealed)}
		}
	}
}

// readSecrets sets what is not secret of what signs and authorizes requests.
func readSecrets(spec *api.SubscriptionSpec, s *fanout.Settings) {
	for _, given := range spec.Secrets {
		next := fanout.Secret{}
		if given.Until != nil {
			next.Until = given.Until.UTC()
		}
		s.Secrets = append(s.Secrets, next)
	}
	if a := spec.Authorization; a != nil {
		s.Authorization = &fanout.Authorization{
			Kind: fanout.AuthorizationKind(a.Kind), User: a.User, Header: a.Header, URL: a.URL, Client: a.Client, Scopes: a.Scopes,
		}
	}
	if t := spec.TLS; t != nil {
		s.TLS = &fanout.TLS{CA: t.CA, Cert: t.Cert}
	}
}

// seal sets the secrets of a subscription as they are stored: new ones sealed, and those that are kept
// by their marks, each for its own use.
func (s Subscriptions) seal(one *fanout.Subscription, spec *api.SubscriptionSpec, old fanout.Settings) (faults []api.Fault) {
	kept := map[fanout.Use]map[string]string{fanout.ForSigning: {}, fanout.ForAuthorization: {}, fanout.ForTLS: {}}
	for _, k := range old.Sealed() {
		kept[k.Use][keyring.Mark(*k.Text)] = *k.Text
	}
	sealed := func(use fanout.Use, field string, given api.KeptSecret) string {
		if given.Value == "" {
			if kept[use][given.Mark] == "" {
				faults = append(faults, api.Fault{Field: field, Value: api.Clip(given.Mark), Problem: "has no value, and is no mark of a secret that this subscription has"})
			}
			return kept[use][given.Mark]
		}
		for _, text := range kept[use] { // the same secret again changes nothing
			was, err := s.Hub.Open(one, fanout.Sealed{Use: use, Field: field, Text: &text})
			if err == nil && subtle.ConstantTimeCompare([]byte(was), []byte(given.Value)) == 1 {
				return text
			}
		}
		text, err := s.Hub.Seal(one, use, given.Value)
		if err != nil {
			faults = append(faults, api.Fault{Field: field, Problem: "cannot be kept: " + err.Error()})
		}
		return text
	}
	for i, given := range spec.Secrets {
		one.Secrets[i].Sealed = sealed(fanout.ForSigning, fmt.Sprintf("secrets[%d]", i), api.KeptSecret{Value: given.Value, Mark: given.Mark})
	}
	if one.Authorization != nil {
		one.Authorization.Sealed = sealed(fanout.ForAuthorization, "authorization.secret", spec.Authorization.Secret)
	}
	if one.TLS != nil && spec.TLS.Key != nil {
		one.TLS.Sealed = sealed(fanout.ForTLS, "tls.key", *spec.TLS.Key)
	}
	return faults
}
