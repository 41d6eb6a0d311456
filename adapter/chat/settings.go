package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// settings are the checked settings of one channel.
type settings struct {
	place
	targets       map[string]place // further targets, by the address of a recipient
	topic         string           // ntfy: for recipients without an address
	user          string
	password      string   // name of a secret
	priority      *int     // nil: the server's default
	tags          []string // ntfy
	ca, cert, key string
	timeout       time.Duration
	insecure      bool // URLs may use http to any host
}

// place is one target: where requests go, and how they are authorized.
type place struct {
	url       string   // empty: the URL is in the secret
	urlSecret string   // name of a secret
	token     string   // name of a secret
	signing   []string // names of secrets, newest first
}

// Limits and defaults of settings.
const (
	defaultTimeout = 30 * time.Second // for one request with its answer
	mostTargets    = 200
	mostSigning    = 4
	mostTimeout    = 2 * time.Minute
)

// readSettings reads settings. An unknown key is a fault, and so is a duplicate key. It returns all
// faults at once.
func readSettings(kind string, raw json.RawMessage, secrets bool) (settings, error) {
	s := settings{timeout: defaultTimeout, targets: map[string]place{}}
	r := &reader{secrets: secrets}
	fields := map[string]func(string, json.RawMessage){
		"ca":       r.text(&s.ca),
		"cert":     r.text(&s.cert),
		"key":      r.text(&s.key),
		"timeout":  r.duration(&s.timeout),
		"insecure": r.truth(&s.insecure),
	}
	s.fields(r, kind, fields)
	switch kind {
	case webhook, teams, slack:
		fields["targets"] = r.targets(kind, &s)
	case gotify:
		fields["targets"] = r.targets(kind, &s)
		fields["priority"] = r.number(&s.priority, 0, 10)
	case ntfy:
		fields["topic"] = r.text(&s.topic)
		fields["user"] = r.text(&s.user)
		fields["password"] = r.name(&s.password)
		fields["priority"] = r.number(&s.priority, 1, 5)
		fields["tags"] = r.texts(&s.tags)
	}
	r.object("", raw, fields)
	s.check(r, kind)
	return s, errors.Join(r.faults...)
}

// fields adds the keys that a target of a kind has.
func (p *place) fields(r *reader, kind string, to map[string]func(string, json.RawMessage)) {
	to["url"] = r.address(p, kind)
	switch kind {
	case webhook:
		to["signing"] = r.names(&p.signing)
	case ntfy, gotify:
		to["token"] = r.name(&p.token)
	}
}

// targets reads the further targets.
func (r *reader) targets(kind string, s *settings) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) {
		entries, ok := r.entries(path, raw)
		if !ok {
			return
		}
		if len(entries) > mostTargets {
			r.fault(path, fmt.Sprint(len(entries)), fmt.Sprintf("are too many targets; at most %d are kept", mostTargets))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			at := path + "." + clip(name, 64)
			if !isName(name) {
				r.fault(at, "", "is not a valid name: it must have 1 to 64 letters, digits, dots, - and _")
				continue
			}
			p, fields := place{}, map[string]func(string, json.RawMessage){}
			p.fields(r, kind, fields)
			if kind == gotify {
				delete(fields, "url") // a further target uses the channel's server
			}
			r.object(at, entries[name], fields)
			switch {
			case kind == gotify && p.token == "":
				r.fault(at+".token", "", `is missing: name the secret that holds the token of the application, as {"secret": "NAME"}`)
			case kind != gotify && p.url == "" && p.urlSecret == "":
				r.fault(at+".url", "", "is missing, or wrong")
			}
			s.targets[name] = p
		}
	}
}

// check finds faults that involve several keys.
func (s *settings) check(r *reader, kind string) {
	ownURL := s.url != "" || s.urlSecret != ""
	r.checkURL("url", s.url, s.insecure)
	for _, name := range slices.Sorted(maps.Keys(s.targets)) {
		p := s.targets[name]
		r.checkURL("targets."+name+".url", p.url, s.insecure)
		if kind == webhook && !ownURL && len(s.signing) == 0 && len(p.signing) == 0 && !r.bad["targets."+name+".signing"] {
			r.fault("targets."+name+".signing", "", "is missing here and in the channel")
		}
	}
	several := kind == webhook || kind == teams || kind == slack
	switch {
	case !ownURL && several && len(s.targets) == 0 && !r.bad["url"] && !r.bad["targets"]:
		r.fault("url", "", "is missing: a channel needs a URL, or targets")
	case !ownURL && !several && !r.bad["url"]:
		r.fault("url", "", "is missing: it is the URL of the server")
	}
	switch {
	case kind == webhook && ownURL && len(s.signing) == 0 && !r.bad["signing"]:
		r.fault("signing", "", `is missing: name the secret that signs, as [{"secret": "NAME"}]`)
	case kind == gotify && s.token == "" && len(s.targets) == 0 && !r.bad["token"] && !r.bad["targets"]:
		r.fault("token", "", `is missing: name the secret that holds the token of the application, as {"secret": "NAME"}`)
	case kind == ntfy && s.token != "" && s.user != "":
		r.fault("user", "", "is set together with token: keep one of them")
	case kind == ntfy && (s.user == "") != (s.password == "") && !r.bad["password"]:
		r.fault("password", "", "and user go together: give both or none")
	}
	if kind == ntfy && s.topic != "" && !isTopic(s.topic) {
		r.fault("topic", clip(s.topic, 80), "is not a valid topic: it must have 1 to 64 letters, digits, - and _")
	}
	if (s.cert == "") != (s.key == "") {
		r.fault("cert", clip(s.cert, 80), "and key go together: give both or none")
	}
	if s.timeout < time.Second || s.timeout > mostTimeout {
		r.fault("timeout", s.timeout.String(), "must be from 1s to "+mostTimeout.String())
	}
}

// checkURL reports what is wrong with a URL in the settings. It does not quote the URL, which may
// be a secret after all.
func (r *reader) checkURL(at, text string, insecure bool) {
	if text == "" {
		return
	}
	u, err := parseURL(text, insecure)
	switch {
	case err != nil:
		r.fault(at, "", err.Error())
	case u.User != nil:
		r.fault(at, "", `holds credentials: put the URL into a secret and name that, as {"secret": "NAME"}`)
	case secrets.InQuery(u):
		r.fault(at, "", `holds a secret in its query, as it seems: put the URL into a secret and name that, as {"secret": "NAME"}`)
	}
}

// parseURL reads a URL. Its errors quote no part of it.
func parseURL(text string, insecure bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("is not a URL: it must begin with https:// and name a host")
	case u.Scheme == "http" && !insecure && !isLoopback(u.Hostname()):
		return nil, errors.New("must begin with https://, as everybody on the way could read it; insecure: true allows http")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// CheckAddress returns a *holdfast.FieldError if address cannot be the address of a recipient on a
// channel of a kind: a topic for ntfy, otherwise the name of one of the channel's targets. It may
// be empty if the channel has a target of its own.
func CheckAddress(kind, address string) error {
	fault := func(problem string) error {
		return &holdfast.FieldError{Field: "address", Value: clip(address, 80), Problem: problem}
	}
	switch {
	case address == "":
		return nil
	case kind == ntfy && !isTopic(address):
		return fault("is not a valid topic: it must have 1 to 64 letters, digits, - and _")
	case !isName(address):
		return fault("is not a valid name of a target: it must have 1 to 64 letters, digits, dots, - and _")
	}
	return nil
}

func isTopic(s string) bool { return isName(s) && !strings.Contains(s, ".") }

func isName(s string) bool {
	return s != "" && len(s) <= 64 && !slices.Contains([]string{".", ".."}, s) && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}
