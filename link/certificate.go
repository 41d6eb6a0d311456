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

// ClientCerts says which client certificates a site needs beside its credential.
type ClientCerts string

// The kinds of certificate that central asks for.
const (
	NoCert   ClientCerts = ""     // none: a credential is enough
	SiteCert ClientCerts = "site" // one that names the site as its common name or a DNS name
	AnyCert  ClientCerts = "any"  // any certificate of the authority; it does not tell one site from another
)

// certified reports whether the request carries a certificate, if one is required. If it does not,
// certified answers the request.
func (c *Central) certified(w http.ResponseWriter, r *http.Request) bool {
	if c.conf.ClientCerts == NoCert || r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return true
	}
	refuse(w, http.StatusForbidden, wire.Reply{
		Outcome: holdfast.LaneFault.String(), Code: "certificate_missing", Error: "send a client certificate of this central's authority",
	})
	return false
}

// certifies reports whether the request's certificate is good for the site. If it is not, certifies
// answers which certificate is needed. So a stolen credential is worth nothing with another site's
// certificate.
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

// mayEnroll reports whether the request's certificate is good for the site of the token. If it is
// not, mayEnroll answers the request. It checks before the token is spent, so that the site can
// come again with another certificate. If the store cannot tell whose token it is, nobody enrolls.
func (c *Central) mayEnroll(w http.ResponseWriter, r *http.Request, token string) bool {
	if c.conf.ClientCerts != SiteCert {
		return true
	}
	site, err := c.conf.Store.TokenSite(r.Context(), bearer.Hash(token))
	switch {
	case err == nil:
		return c.certifies(w, r, site)
	case errors.Is(err, holdfast.ErrNotFound):
		return true // an unknown token is refused later
	}
	c.few.LogAttrs(r.Context(), slog.LevelError, "site of a token not read", slog.String("remote", serve.Address(r).String()), slog.Any("error", err))
	unavailable(w)
	return false
}

// namesOf lists the names in the request's certificate.
func namesOf(r *http.Request) []string {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	leaf := r.TLS.VerifiedChains[0][0]
	return append([]string{leaf.Subject.CommonName}, leaf.DNSNames...)
}
