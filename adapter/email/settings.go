package email

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The ways to a server. There is none that is taken because nothing was said.
const (
	tlsNone          = "none"
	tlsStart         = "starttls"
	tlsImplicit      = "implicit"
	tlsOpportunistic = "opportunistic"
)

// The mechanisms of authentication.
const (
	authNone        = "none"
	authPlain       = "plain"
	authLogin       = "login"
	authXOAuth2     = "xoauth2"
	authOAuthBearer = "oauthbearer"
)

// settings are those of one channel, checked.
type settings struct {
	host              string
	port              int
	tls, serverName   string
	ca, cert, key     string
	ehlo              string // empty: the machine's name or address
	from              mail.Address
	replyTo           *mail.Address // nil: none
	messageIDDomain   string
	auth              authSettings
	allowInsecureAuth bool
	connections       int
	perConnection     int           // mails
	idle              time.Duration // after which a connection is closed
	recipientsPerMail int
	timeouts          timeouts
	zone              *time.Location

	// Set by loadTLS.
	roots *x509.CertPool // nil: the system's
	conf  *tls.Config
}

type authSettings struct {
	mechanism string
	user      string
	password  string // name of a secret
	grant     grant
}

type grant struct {
	url, client string
	secret      string // name of a secret
	scopes      []string
}

// timeouts are how long each phase may take.
type timeouts struct {
	greeting time.Duration // to connect, and then to be greeted
	command  time.Duration // an answer, or a handshake
	data     time.Duration // one piece of a mail
	afterDot time.Duration // the answer to all of it
}

func defaults() settings {
	return settings{
		connections: 4, perConnection: 100, idle: 20 * time.Second, recipientsPerMail: 100, zone: time.UTC,
		auth:     authSettings{mechanism: authNone},
		timeouts: timeouts{greeting: 30 * time.Second, command: time.Minute, data: time.Minute, afterDot: 10 * time.Minute},
	}
}

// readSettings takes settings apart; all faults are returned at once.
func readSettings(raw json.RawMessage, secrets bool) (settings, error) {
	s := defaults()
	r := &reader{secrets: secrets}
	var from, replyTo, zone string
	r.object("", raw, fields{
		"host": r.text(&s.host), "port": r.number(&s.port, 65535),
		"tls": r.text(&s.tls), "serverName": r.text(&s.serverName), "ca": r.text(&s.ca), "cert": r.text(&s.cert), "key": r.text(&s.key),
		"ehlo": r.text(&s.ehlo), "from": r.text(&from), "replyTo": r.text(&replyTo), "messageIdDomain": r.text(&s.messageIDDomain),
		"auth": r.part(fields{
			"mechanism": r.text(&s.auth.mechanism), "user": r.text(&s.auth.user), "password": r.name(&s.auth.password),
			"oauth2": r.part(fields{
				"url": r.text(&s.auth.grant.url), "client": r.text(&s.auth.grant.client), "secret": r.name(&s.auth.grant.secret),
				"scopes": read(r, &s.auth.grant.scopes, "a list of texts"),
			}),
		}),
		"allowInsecureAuth": r.truth(&s.allowInsecureAuth),
		"connections":       r.number(&s.connections, 100), "perConnection": r.number(&s.perConnection, 10000),
		"idle": r.duration(&s.idle, time.Hour), "recipientsPerMail": r.number(&s.recipientsPerMail, 1000),
		"timeouts": r.part(fields{
			"greeting": r.duration(&s.timeouts.greeting, 10*time.Minute),
			"command":  r.duration(&s.timeouts.command, 10*time.Minute),
			"data":     r.duration(&s.timeouts.data, 10*time.Minute),
			"afterDot": r.duration(&s.timeouts.afterDot, 30*time.Minute),
		}),
		"zone": r.text(&zone),
	})
	s.checkServer(r)
	s.checkAuth(r)
	s.checkMail(r, from, replyTo, zone)
	return s, errors.Join(r.faults...)
}

// checkServer finds what is wrong with the way to the server (E28).
func (s *settings) checkServer(r *reader) {
	switch {
	case s.host == "":
		r.fault("host", "", "is missing: it is the mail server's")
	case !isHost(s.host):
		r.fault("host", s.host, "is no name of a host and no address: letters, digits, dots and hyphens")
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
			r.fault(field, name, "is no name of a host: letters, digits, dots and hyphens")
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
		r.fault("auth.oauth2", "", "says how tokens are fetched, and password names one that something else renews: give one of them")
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
		r.fault("auth.oauth2.url", "", "must begin with https:// and name a host: it is that of the token endpoint")
	case u.User != nil:
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
			r.fault(field, text, "is no mail address: "+err.Error())
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
			r.fault("zone", zone, `is no time zone such as "Europe/Berlin" or "UTC"`)
		}
	}
}

// loadTLS reads the certificates. Our own is read again for each connection.
func (s *settings) loadTLS() error {
	r := &reader{}
	s.conf = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.serverName}
	if s.conf.ServerName == "" {
		s.conf.ServerName = s.host
	}
	if s.ca != "" {
		roots, err := s.authorities()
		if err != nil {
			r.fault("ca", s.ca, err.Error())
		}
		s.roots, s.conf.RootCAs = roots, roots
	}
	if s.cert != "" && s.key != "" {
		if _, err := tls.LoadX509KeyPair(s.cert, s.key); err != nil {
			r.fault("cert", s.cert, "cannot be used with its key: "+err.Error())
		}
		s.conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(s.cert, s.key)
			return &c, err
		}
	}
	return errors.Join(r.faults...)
}

func (s *settings) address() string { return net.JoinHostPort(s.host, fmt.Sprint(s.port)) }

// isHost takes names of hosts and IP addresses.
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

// isLiteral takes addresses in brackets (RFC 5321, 4.1.3).
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
