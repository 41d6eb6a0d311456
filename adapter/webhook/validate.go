package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
)

// Limits of a target.
const (
	mostHeaders    = 32
	mostHeaderSize = 8 << 10 // of all names and values
	mostSecrets    = 8
)

// Validate returns all faults of a target, each a *holdfast.FieldError that quotes no secret. It
// asks nobody: whether a name leads to an allowed address is seen at each connection.
func (s *Sender) Validate(t *Target) error {
	r := &faults{}
	r.url("url", t.URL)
	if u, err := parseURL(t.URL); err == nil {
		r.add("url", s.guard.Check(u.Hostname()))
	}
	r.headers(t.Headers)
	r.auth(&t.Auth)
	if len(t.Secrets) > mostSecrets {
		r.fault("secrets", fmt.Sprintf("are %d: at most %d sign", len(t.Secrets), mostSecrets))
	}
	for i := range t.Secrets {
		_, err := standardwebhooks.NewSigner(t.Secrets[i].Value)
		r.add(fmt.Sprintf("secrets[%d]", i), err)
	}
	switch t.Mode {
	case "", Plain, Binary, Structured, Notificaties:
	default:
		r.fault("mode", "is not one of plain, binary, structured, notificaties")
	}
	if t.Timeout < 0 || t.Timeout > MaxTimeout {
		r.fault("timeout", "must be from 1ms to "+MaxTimeout.String())
	}
	_, err := t.TLS.config()
	r.add("tls", err)
	return errors.Join(r.all...)
}

// faults collects what is wrong.
type faults struct{ all []error }

func (r *faults) fault(field, problem string) {
	r.all = append(r.all, &holdfast.FieldError{Field: field, Problem: problem})
}

func (r *faults) add(field string, err error) {
	if err != nil {
		r.fault(field, err.Error())
	}
}

func (r *faults) url(field, text string) {
	u, err := parseURL(text)
	r.add(field, err)
	if err == nil && u.Scheme == "http" && secrets.InQuery(u) {
		r.fault(field, "holds a secret in its query, as it seems, which everybody on the way could read: begin it with https://")
	}
}

// reserved reports whether a header belongs to the product or to HTTP itself.
func reserved(name string) bool {
	name = http.CanonicalHeaderKey(name)
	for _, prefix := range []string{"Webhook-", "Ce-", "Proxy-", "Content-", "Holdfast-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"Accept-Encoding", "Connection", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Traceparent", "Tracestate", "Transfer-Encoding", "Upgrade",
	}, name)
}

// headers accepts names and values that HTTP can carry, and that belong to the subscriber.
func (r *faults) headers(all map[string]string) {
	size := 0
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value, canonical := all[name], http.CanonicalHeaderKey(name)
		size += len(name) + len(value)
		at := "headers." + name
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			r.fault("headers", "has a name that is not the name of a header: use letters, digits and -")
		case canonical == "Authorization" || canonical == "Cookie":
			r.fault(at, "is a secret: use authorization")
		case reserved(name):
			r.fault(at, "is set for each request")
		case !httpguts.ValidHeaderFieldValue(value):
			r.fault(at, "has a control character in its value")
		case seen[canonical]:
			r.fault(at, "is also set in another spelling")
		}
		seen[canonical] = true
	}
	if len(all) > mostHeaders || size > mostHeaderSize {
		r.fault("headers", fmt.Sprintf("are %d with %d bytes: at most %d with %d are sent", len(all), size, mostHeaders, mostHeaderSize))
	}
}

// auth accepts one way, with all that it needs.
func (r *faults) auth(a *Auth) {
	ways := 0
	need := func(field, value string) {
		switch {
		case value == "":
			r.fault("authorization."+field, "is missing")
		case !httpguts.ValidHeaderFieldValue(value):
			r.fault("authorization."+field, "has a control character")
		}
	}
	if a.Bearer != "" {
		ways++
		need("secret", a.Bearer)
	}
	if b := a.Basic; b != nil {
		ways++
		need("user", b.User)
		if strings.Contains(b.User, ":") {
			r.fault("authorization.user", "has a colon")
		}
	}
	if k := a.Key; k != nil {
		ways++
		need("secret", k.Value)
		if !httpguts.ValidHeaderFieldName(k.Header) || reserved(k.Header) {
			r.fault("authorization.header", "is not the name of a header that is free")
		}
	}
	if o := a.OAuth2; o != nil {
		ways++
		r.url("authorization.url", o.URL)
		need("client", o.Client)
		need("secret", o.ClientSecret)
	}
	if z := a.ZGW; z != nil {
		ways++
		need("client", z.Client)
		need("secret", z.Secret)
	}
	if ways > 1 {
		r.fault("authorization", "has more than one way: keep one")
	}
}
