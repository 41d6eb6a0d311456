package email

import (
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// checkServer finds faults in how the server is reached (E28).
func (s *settings) checkServer(r *reader) {
	switch {
	case s.host == "":
		r.fault("host", "", "is missing: it is the mail server's")
	case !isHost(s.host):
		r.fault("host", s.host, "is neither the name of a host nor an address: letters, digits, dots and hyphens")
	}
	if s.port == 0 {
		r.fault("port", "", "is missing, or wrong: 587 for starttls, 465 for implicit, 25 for a relay")
	}
	switch s.tls {
	case tlsNone, tlsStart, tlsImplicit, tlsOpportunistic:
	case "":
		r.fault("tls", "", "is missing: it must be none, starttls, implicit or opportunistic")
	default:
		r.fault("tls", s.tls, "must be none, starttls, implicit or opportunistic")
	}
	for field, name := range map[string]string{"serverName": s.serverName, "ehlo": s.ehlo, "messageIdDomain": s.messageIDDomain} {
		if name != "" && !isHost(name) && (field != "ehlo" || !isLiteral(name)) {
			r.fault(field, name, "is not the name of a host: letters, digits, dots and hyphens")
		}
	}
	if isLocal(s.ehlo) {
		r.fault("ehlo", s.ehlo, "names no machine to others; leave it out, or give the name by which this machine is known")
	}
	if (s.cert == "") != (s.key == "") {
		r.fault("cert", s.cert, "and key go together: give both or none")
	}
}

func (s *settings) checkAuth(r *reader) {
	a := &s.auth
	oauth := a.mechanism == authXOAuth2 || a.mechanism == authOAuthBearer
	switch a.mechanism {
	case authNone:
		if a.user != "" || a.password != "" || a.grant.given() {
			r.fault("auth.mechanism", a.mechanism, "leaves no use for user, password or oauth2: it must be plain, login, xoauth2 or oauthbearer")
		}
		return
	case authPlain, authLogin, authXOAuth2, authOAuthBearer:
	default:
		r.fault("auth.mechanism", a.mechanism, "must be none, plain, login, xoauth2 or oauthbearer")
		return
	}
	if a.user == "" || strings.ContainsFunc(a.user, isControl) {
		r.fault("auth.user", a.user, "is missing, or has control characters")
	}
	switch {
	case !oauth && a.password == "":
		r.fault("auth.password", "", `is missing: name the secret, as {"secret": "NAME"}`)
	case !oauth && a.grant.given():
		r.fault("auth.oauth2", "", "is for xoauth2 and oauthbearer only")
	case oauth && a.grant.given() == (a.password != ""):
		r.fault("auth.oauth2", "", "fetches tokens, and password names a token that something else renews: give only one of them")
	case oauth && a.password == "":
		a.grant.check(r)
	}
	if s.tls == tlsNone && !s.allowInsecureAuth {
		r.fault("tls", s.tls, "would show the credentials to everybody on the way: use starttls or implicit, or set allowInsecureAuth")
	}
}

func (g *grant) given() bool {
	return g.url != "" || g.client != "" || g.secret != "" || len(g.scopes) > 0
}

func (g *grant) check(r *reader) {
	u, err := url.Parse(g.url)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		r.fault("auth.oauth2.url", "", "must begin with https:// and name a host: it is the URL of the token endpoint")
	case u.User != nil, secrets.InQuery(u):
		r.fault("auth.oauth2.url", "", "must hold no credentials")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		r.fault("auth.oauth2.url", "", "must begin with https://, as the secret is sent to it")
	}
	if g.client == "" {
		r.fault("auth.oauth2.client", "", "is missing")
	}
	if g.secret == "" {
		r.fault("auth.oauth2.secret", "", `is missing: name the secret, as {"secret": "NAME"}`)
	}
}

func (s *settings) checkMail(r *reader, from, replyTo, zone string) {
	address := func(field, text string) *mail.Address {
		a, err := parseMailbox(text)
		switch {
		case err != nil:
			r.fault(field, text, "is not a mail address: "+err.Error())
		case !isASCII(a.Address):
			r.fault(field, text, "must have an address of ASCII letters before the @, which each server takes")
		case len(a.Name) > 200 || strings.ContainsFunc(a.Name, isControl):
			r.fault(field, text, "has a name of more than 200 bytes, or one with control characters")
		default:
			return a
		}
		return nil
	}
	if from == "" {
		r.fault("from", "", `is missing: the sender's address, such as "Plant 7 <alarm@plant.example>"`)
	} else if a := address("from", from); a != nil {
		s.from = *a
	}
	if replyTo != "" {
		s.replyTo = address("replyTo", replyTo)
	}
	if zone != "" {
		var err error
		if s.zone, err = time.LoadLocation(zone); err != nil || zone == "Local" {
			r.fault("zone", zone, `is not a time zone such as "Europe/Berlin" or "UTC"`)
		}
	}
}

// isHost accepts host names and IP addresses.
func isHost(s string) bool {
	if net.ParseIP(s) != nil {
		return true
	}
	if len(s) > 253 {
		return false
	}
	return !slices.ContainsFunc(strings.Split(strings.TrimSuffix(s, "."), "."), func(label string) bool {
		return label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
		})
	})
}

// isLiteral accepts addresses in brackets (RFC 5321, 4.1.3).
func isLiteral(s string) bool {
	inner, ok := strings.CutPrefix(s, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	return ok && closed && net.ParseIP(strings.TrimPrefix(inner, "IPv6:")) != nil
}

func isLocal(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasPrefix(name, "localhost.")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
