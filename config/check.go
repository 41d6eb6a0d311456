package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/internal/socket"
)

const (
	maxName = 128
	maxTime = 3650 * day
)

// Check finds the faults of a configuration that was made by hand; Load has
// checked already what it returns. The error is an *Error with every fault.
func (c *Config) Check() ([]Warning, error) {
	r := newReport()
	r.check(c)
	return r.warnings, r.err()
}

func (r *report) check(c *Config) {
	r.all = c
	configKeys().check(r, "", c)
	r.checkRole(c)
	r.checkListen(c)
	for _, g := range c.givenUp() {
		r.warn(g.path, g.value, g.problem)
	}
	r.checkStore(c)
	if c.Data == "" && c.Store.IsZero() {
		r.fault("data", "", problem{"is not set", "name a folder, such as ./holdfast-data"})
	}
	if c.Drain > c.Stop && c.Drain <= time.Hour && c.Stop >= 0 {
		r.fault("drain", FormatDuration(c.Drain), problem{"is longer than stop, " + FormatDuration(c.Stop) + ", which it is a part of", "make stop longer, or drain shorter"})
	}
	r.checkReceive(c)
}

func (r *report) checkListen(c *Config) {
	secured := c.TLS.Cert != "" && c.TLS.Key != ""
	if c.Tokens == TokensNever && c.TLS != (TLS{}) {
		r.fault("tokens", string(c.Tokens), problem{
			"lets everybody who reaches the listener do everything, beside tls, which is for other machines",
			"write remote and make tokens with: holdfast tokens create",
		})
	}
	switch {
	case c.TLS.Cert != "" && c.TLS.Key == "" && !r.bad["tls.key"]:
		r.fault("tls", "", problem{"has cert without key", "name both files, or neither"})
	case c.TLS.Key != "" && c.TLS.Cert == "" && !r.bad["tls.cert"]:
		r.fault("tls", "", problem{"has key without cert", "name both files, or neither"})
	case c.TLS.Clients != "" && c.TLS.Cert == "" && !r.bad["tls.cert"]:
		r.fault("tls", "", problem{"has clients without a certificate of its own", "name cert and key as well, or remove it"})
	case c.TLS.AnySite && c.TLS.Clients == "" && !r.bad["tls.clients"]:
		r.fault("tls.anySite", "true", problem{"has no meaning where sites show no certificate", "name tls.clients, or remove it"})
	}
	if schemeOf(c.Listen) == socket.Scheme {
		r.checkSocket("listen", c.Listen)
		if c.TLS != (TLS{}) {
			r.fault("tls", "", problem{"has no meaning for a socket, which never leaves the machine", "remove it"})
		}
		return
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		r.fault("listen", c.Listen, problem{"is not an address with a port", "write host:port, such as 127.0.0.1:8420, [::1]:8420 for IPv6, or unix:///path/of/socket"})
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		r.fault("listen", c.Listen, problem{"has no port from 0 to 65535", "write host:port, such as 127.0.0.1:8420"})
		return
	}
	// A fault of tls is reported already, and would be the cause of this one.
	halfway := !secured && c.TLS != (TLS{}) || r.bad["tls"] || r.bad["tls.cert"] || r.bad["tls.key"]
	if isLoopback(host) || secured || halfway {
		return
	}
	if c.ListenUnencrypted {
		return // warned of with all that is given up
	}
	r.fault("listen", c.Listen, problem{
		"can be reached from other machines, without TLS", "set tls.cert and tls.key, or listenUnencrypted: true if you trust everybody on that network",
	})
}

// isLoopback does not resolve names: an answer of today says nothing about
// tomorrow's.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (r *report) checkReceive(all *Config) {
	c := all.Receive
	// OI-10: an id that is forgotten while its sender still retries is new
	// again, and its effect happens twice.
	if len(c.Endpoints) > 0 && all.Retention.Inbox < 2*c.Window {
		r.fault("retention.inbox", FormatDuration(all.Retention.Inbox), problem{
			"is shorter than twice receive.window, " + FormatDuration(c.Window),
			"keep ids for at least " + FormatDuration(2*c.Window) + ", or make receive.window the longest that your senders retry",
		})
	}
	if len(c.Endpoints) > 0 && len(c.Sources) == 0 && !r.given("receive.secrets") {
		r.warn("receive.endpoints", "", problem{"has endpoints, but no source has a secret, so that every message will be refused", "add receive.secrets"})
	}
}

func (r *report) checkSource(path string, s Source) {
	oneOf(r, path+".hmac", s.HMAC, HMACv2, HMACv1)
	if len(s.Secrets) == 0 && !r.bad[path+".secrets"] {
		r.fault(path, "", problem{"has no secret", referenceFix})
	}
	for i, secret := range s.Secrets {
		r.checkSecret(element(path, i), secret)
	}
}

// checkSecret finds what is wrong with a secret that was not read by a loader.
func (r *report) checkSecret(path string, s Secret) {
	if r.bad[path] {
		return
	}
	if s.IsZero() {
		r.fault(path, "", problem{"is missing: messages are always signed", referenceFix})
	} else if p := shortSecret(s.Bytes()); p != nil {
		r.fault(path, "", problem{"cannot be used: " + p.what, p.fix})
	}
}

func (r *report) checkEndpoint(path string, e Endpoint) {
	forward := e.Forward != "" || r.given(path+".forward")
	switch {
	case forward && e.Keep:
		r.fault(path, "", problem{"has both forward and keep", "keep one of them: forward calls a program, keep stores the message for one that asks"})
		return
	case !forward && !e.Keep:
		r.fault(path, "", problem{"has neither forward nor keep", "write {forward: URL} or {keep: true}"})
		return
	case e.Keep && (e.Timeout != 0 || r.given(path+".timeout")):
		r.fault(path+".timeout", FormatDuration(e.Timeout), problem{"has no meaning beside keep, which calls nobody", "remove it"})
	case forward:
		r.checkURL(path+".forward", e.Forward, true)
		r.between(path+".timeout", e.Timeout, time.Millisecond, time.Hour)
	}
}

func (r *report) between(path string, d, least, most time.Duration) {
	what := "is too short"
	switch {
	case d >= least && d <= most:
		return
	case d > most:
		what = "is too long"
	}
	r.fault(path, FormatDuration(d), problem{
		what, fmt.Sprintf("write a time from %s to %s", FormatDuration(least), FormatDuration(most)),
	})
}

// oneOf reports a word that is not among the known ones.
func oneOf[T ~string](r *report, path string, word T, known ...T) {
	if slices.Contains(known, word) {
		return
	}
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	last := len(words) - 1
	p := problem{what: "is not one of " + strings.Join(words[:last], ", ") + " and " + words[last]}
	if word == "" {
		p.what = "is empty; it is one of " + strings.Join(words[:last], ", ") + " and " + words[last]
	}
	if k, ok := nearest(string(word), words); ok {
		p.fix = fmt.Sprintf("did you mean %q?", k)
	}
	r.fault(path, string(word), p)
}

func (r *report) checkName(path, name string) {
	if p := nameProblem(name); p != nil {
		r.fault(path, keyName(name), *p)
	}
}

// nameProblem holds names to what the library accepts in a message, and to
// what can stand in the path of a URL.
func nameProblem(s string) *problem {
	fix := "use 1 to 128 printable ASCII characters without space and slash"
	switch {
	case s == "":
		return &problem{"is empty", fix}
	case len(s) > maxName:
		return &problem{fmt.Sprintf("has %d characters", len(s)), fix}
	case s == "." || s == "..":
		return &problem{"has a meaning of its own in paths", "use another name"}
	}
	if i := strings.IndexFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == '/' }); i >= 0 {
		c, _ := utf8.DecodeRuneInString(s[i:])
		return &problem{fmt.Sprintf("holds the character %q", c), fix}
	}
	return nil
}

// checkPath refuses what no file system takes and no log line should show.
func (r *report) checkPath(path, file string) {
	if !utf8.ValidString(file) || strings.ContainsFunc(file, unicode.IsControl) {
		r.fault(path, file, problem{"holds a control character, or is not UTF-8", "use another name"})
	}
}
