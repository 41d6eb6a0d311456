package email

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"time"

	"github.com/holdfast-mq/holdfast/internal/namedfile"
	"github.com/holdfast-mq/holdfast/notify"
)

// How the connection to a server is secured. There is no default.
const (
	tlsNone          = "none"
	tlsStart         = "starttls"
	tlsImplicit      = "implicit"
	tlsOpportunistic = "opportunistic"
)

// The authentication mechanisms.
const (
	authNone        = "none"
	authPlain       = "plain"
	authLogin       = "login"
	authXOAuth2     = "xoauth2"
	authOAuthBearer = "oauthbearer"
)

// settings are the checked settings of one channel.
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
	perConnection     int           // mails per connection
	idle              time.Duration // how long an idle connection is kept
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
	greeting time.Duration // to connect, and then until the greeting
	command  time.Duration // a reply, or a handshake
	data     time.Duration // writing one piece of a mail
	afterDot time.Duration // the reply to the whole mail
}

func defaults() settings {
	return settings{
		connections: 4, perConnection: 100, idle: 20 * time.Second, recipientsPerMail: 100, zone: time.UTC,
		auth:     authSettings{mechanism: authNone},
		timeouts: timeouts{greeting: 30 * time.Second, command: time.Minute, data: time.Minute, afterDot: 10 * time.Minute},
	}
}

// readSettings reads settings. It returns all faults at once.
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

// loadTLS reads the certificates. Our own certificate is read again for each connection.
func (s *settings) loadTLS() error {
	r := &reader{}
	s.conf = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.serverName}
	if s.conf.ServerName == "" {
		s.conf.ServerName = s.host
	}
	if s.ca != "" {
		roots, err := namedfile.Authorities(s.ca)
		if err != nil {
			r.fault("ca", s.ca, notify.BadCertificates)
		}
		s.roots, s.conf.RootCAs = roots, roots
	}
	if s.cert != "" && s.key != "" {
		if err := namedfile.OwnCertificate(s.conf, s.cert, s.key); err != nil {
			r.fault("cert", s.cert, notify.BadKeyPair)
		}
	}
	return errors.Join(r.faults...)
}

func (s *settings) address() string { return net.JoinHostPort(s.host, fmt.Sprint(s.port)) }
