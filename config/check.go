package config

import (
	"net"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast/internal/setting"
	"github.com/holdfast-mq/holdfast/internal/socket"
)

// Check finds the faults of a configuration that was made by hand; Load checks what it returns by itself. The
// error is an *Error with every fault.
func (c *Config) Check() ([]Warning, error) {
	r := setting.NewReport()
	check(r, c)
	return r.Warnings, r.Err()
}

func check(r *setting.Report, c *Config) {
	r.Root = c
	configKeys(c.kinds()).Check(r, "", c)
	checkRole(r, c)
	checkListen(r, c)
	for _, g := range c.givenUp() {
		r.Warn(g.path, g.value, g.problem)
	}
	checkStore(r, c)
	if c.Data == "" && c.Store.IsZero() {
		r.Fault("data", "", setting.Problem{What: "is not set", Fix: "name a folder, such as ./holdfast-data"})
	}
	if c.Drain > c.Stop && c.Drain <= time.Hour && c.Stop >= 0 {
		r.Fault("drain", setting.FormatDuration(c.Drain), setting.Problem{What: "is longer than stop, " + setting.FormatDuration(c.Stop) + ", which it is a part of", Fix: "make stop longer, or drain shorter"})
	}
	checkReceive(r, c)
	checkNotificaties(r, c)
}

func checkListen(r *setting.Report, c *Config) {
	secured := c.TLS.Cert != "" && c.TLS.Key != ""
	if c.Tokens == TokensNever && c.TLS != (TLS{}) {
		r.Fault("tokens", string(c.Tokens), setting.Problem{
			What: "lets everybody who reaches the listener do everything, although tls lets other machines reach it",
			Fix:  "write remote and make tokens with: holdfast tokens create",
		})
	}
	switch {
	case c.TLS.Cert != "" && c.TLS.Key == "" && !r.Bad["tls.key"]:
		r.Fault("tls", "", setting.Problem{What: "has cert without key", Fix: "name both files, or neither"})
	case c.TLS.Key != "" && c.TLS.Cert == "" && !r.Bad["tls.cert"]:
		r.Fault("tls", "", setting.Problem{What: "has key without cert", Fix: "name both files, or neither"})
	case c.TLS.Clients != "" && c.TLS.Cert == "" && !r.Bad["tls.cert"]:
		r.Fault("tls", "", setting.Problem{What: "has clients without a certificate of its own", Fix: "name cert and key as well, or remove it"})
	case c.TLS.AnySite && c.TLS.Clients == "" && !r.Bad["tls.clients"]:
		r.Fault("tls.anySite", "true", setting.Problem{What: "has no meaning where sites show no certificate", Fix: "name tls.clients, or remove it"})
	}
	if setting.SchemeOf(c.Listen) == socket.Scheme {
		r.CheckSocket("listen", c.Listen)
		if c.TLS != (TLS{}) {
			r.Fault("tls", "", setting.Problem{What: "has no meaning for a socket, which never leaves the machine", Fix: "remove it"})
		}
		return
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		r.Fault("listen", c.Listen, setting.Problem{What: "is not an address with a port", Fix: "write host:port, such as 127.0.0.1:8420, [::1]:8420 for IPv6, or unix:///path/of/socket"})
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		r.Fault("listen", c.Listen, setting.Problem{What: "has no port from 0 to 65535", Fix: "write host:port, such as 127.0.0.1:8420"})
		return
	}
	// A fault of tls is already reported, and would cause this one.
	halfway := !secured && c.TLS != (TLS{}) || r.Bad["tls"] || r.Bad["tls.cert"] || r.Bad["tls.key"]
	if setting.IsLoopback(host) || secured || halfway {
		return
	}
	if c.ListenUnencrypted {
		return // another warning covers all safeguards that are given up
	}
	r.Fault("listen", c.Listen, setting.Problem{
		What: "can be reached from other machines, without TLS", Fix: "set tls.cert and tls.key, or listenUnencrypted: true if you trust everybody on that network",
	})
}

func checkReceive(r *setting.Report, all *Config) {
	c := all.Receive
	// OI-10: if an id is forgotten while its sender still retries, the id counts as new, and its effect happens twice.
	if len(c.Endpoints) > 0 && all.Retention.Inbox < 2*c.Window {
		r.Fault("retention.inbox", setting.FormatDuration(all.Retention.Inbox), setting.Problem{
			What: "is shorter than twice receive.window, " + setting.FormatDuration(c.Window),
			Fix:  "keep ids for at least " + setting.FormatDuration(2*c.Window) + ", or make receive.window the longest that your senders retry",
		})
	}
	if len(c.Endpoints) > 0 && len(c.Sources) == 0 && !r.Given("receive.secrets") {
		r.Warn("receive.endpoints", "", setting.Problem{What: "has endpoints, but no source has a secret, so that every message will be refused", Fix: "add receive.secrets"})
	}
}

func checkSource(r *setting.Report, path string, s Source) {
	setting.OneOf(r, path+".hmac", s.HMAC, HMACv2, HMACv1)
	if len(s.Secrets) == 0 && !r.Bad[path+".secrets"] {
		r.Fault(path, "", setting.Problem{What: "has no secret", Fix: setting.ReferenceFix})
	}
	for i, secret := range s.Secrets {
		r.CheckSecret(setting.Element(path, i), secret)
	}
}

func checkEndpoint(r *setting.Report, path string, e Endpoint) {
	forward := e.Forward != "" || r.Given(path+".forward")
	switch {
	case forward && e.Keep:
		r.Fault(path, "", setting.Problem{What: "has both forward and keep", Fix: "keep one of them: forward calls a program, keep stores the message until a program fetches it"})
		return
	case !forward && !e.Keep:
		r.Fault(path, "", setting.Problem{What: "has neither forward nor keep", Fix: "write {forward: URL} or {keep: true}"})
		return
	case e.Keep && (e.Timeout != 0 || r.Given(path+".timeout")):
		r.Fault(path+".timeout", setting.FormatDuration(e.Timeout), setting.Problem{What: "has no meaning next to keep, which calls no program", Fix: "remove it"})
	case forward:
		r.CheckURL(path+".forward", e.Forward, true)
		r.Between(path+".timeout", e.Timeout, time.Millisecond, time.Hour)
	}
}
