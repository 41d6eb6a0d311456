package link

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/wire"
)

// ClientCerts says which certificates of sites do beside a credential.
type ClientCerts string

// The kinds of certificate that central asks for.
const (
	NoCert   ClientCerts = ""     // a credential is enough
	SiteCert ClientCerts = "site" // one that names the site, as common name or as DNS name
	AnyCert  ClientCerts = "any"  // any of the authority: it tells no site from another
)

// certified says whether a request came with a certificate where one is asked
// for, or answers that it did not.
func (c *Central) certified(w http.ResponseWriter, r *http.Request) bool {
	if c.conf.ClientCerts == NoCert || r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return true
	}
	refuse(w, http.StatusForbidden, wire.Reply{
		Outcome: holdfast.LaneFault.String(), Code: "certificate_missing", Error: "send a client certificate of this central's authority",
	})
	return false
}

// certifies says whether the request's certificate is good for the site, or
// answers which one is needed: with another's certificate and a stolen
// credential nobody is that site.
func (c *Central) certifies(w http.ResponseWriter, r *http.Request, site string) bool {
	if c.conf.ClientCerts != SiteCert {
		return true
	}
	names := namesOf(r)
	if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, site) }) {
		return true
	}
	err := fmt.Errorf("the client certificate must name site %s as its common name or a DNS name; it names: %s",
		site, shown.Line(strings.Join(names, ", "), 200))
	c.server.TurnAway(w, r, http.StatusForbidden, wire.Reply{Outcome: holdfast.LaneFault.String(), Code: "certificate_of_another", Error: err.Error()}, err)
	return false
}

// mayEnroll says whether the request's certificate is good for the site of a
// token, or answers that it is not. It is asked before the token is spent:
// another certificate may come with it. Where nobody can tell whose the token
// is, nobody enrolls.
func (c *Central) mayEnroll(w http.ResponseWriter, r *http.Request, token string) bool {
	if c.conf.ClientCerts != SiteCert {
		return true
	}
	site, err := c.conf.Store.TokenSite(r.Context(), bearer.Hash(token))
	switch {
	case err == nil:
		return c.certifies(w, r, site)
	case errors.Is(err, holdfast.ErrNotFound):
		return true // it is refused for that
	}
	c.few.LogAttrs(r.Context(), slog.LevelError, "site of a token not read", slog.String("remote", serve.Address(r).String()), slog.Any("error", err))
	unavailable(w)
	return false
}

// namesOf lists whom the request's certificate names.
func namesOf(r *http.Request) []string {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	leaf := r.TLS.VerifiedChains[0][0]
	return append([]string{leaf.Subject.CommonName}, leaf.DNSNames...)
}
