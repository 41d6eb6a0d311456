package doctor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport"
)

// judgePeers judges the destinations. A problem that waiting solves is a warning: the messages wait, too. A
// problem that somebody must solve is failing.
func judgePeers(f *Findings) []Check {
	const g = in("Destinations")
	var checks []Check
	for _, p := range f.Peers {
		switch {
		case p.Self:
			checks = append(checks, g.ok(p.Name, "this node's own inbox"))
		case p.Err != nil:
			checks = append(checks, judgeUnreached(g, p, f.Now))
		case p.Kind != nil:
			checks = append(checks, g.ok(p.Name, p.URL+" "+p.Kind.Reached))
		default:
			checks = append(checks, judgeAnswer(g, p))
			if !p.Until.IsZero() {
				checks = append(checks, judgeCert(g, p.Name+" certificate", p.URL, p.Until, nil, f.Now))
			}
			checks = append(checks, judgeCredentials(g, p))
		}
	}
	if len(checks) == 0 {
		return []Check{g.skipped("destinations", "the configuration names none")}
	}
	return checks
}

func judgeUnreached(g in, p PeerFound, now time.Time) Check {
	f := holdfast.AsFailure(p.Err)
	detail := fmt.Sprintf("%s: %s: %v", p.URL, f.Code, p.Err)
	var hint string
	switch f.Code {
	case transport.CodeNoHost, transport.CodeDNS:
		hint = "check whether the name is right, and whether this machine reaches its name server"
	case transport.CodeRefused:
		hint = "nobody listens there: check whether the other side runs, and whether the port is right"
	case transport.CodeNoRoute, transport.CodeConnectTime:
		hint = "check whether the other side is up, and what is between: routes, packet filters"
	case transport.CodeCertificate:
		if c, ok := errors.AsType[*tls.CertificateVerificationError](p.Err); ok && len(c.UnverifiedCertificates) > 0 &&
			c.UnverifiedCertificates[0].NotAfter.Before(now) {
			return judgeCert(g, p.Name+" certificate", p.URL, c.UnverifiedCertificates[0].NotAfter, nil, now)
		}
		hint = "name the CA of the other side with ca, or let it get a certificate for the name in the URL"
	case transport.CodeTLS:
		hint = "check whether the other side speaks TLS 1.2 or later at this port"
	case transport.CodeAccess:
		hint = "give the user of the node access to the socket"
	case transport.CodeTimeout:
		hint = "it accepts connections but does not answer: check whether it hangs, or wait longer with --timeout"
	default:
		if p.Kind != nil && p.Kind.Held != "" && f.Outcome == holdfast.LaneFault {
			hint = p.Kind.Held
			break
		}
		hint = "see what the other side logs"
	}
	if f.Outcome == holdfast.LaneFault {
		return g.failing(p.Name, detail, hint)
	}
	return g.warning(p.Name, detail, hint)
}

func judgeAnswer(g in, p PeerFound) Check {
	took := p.Came.Sub(p.Sent)
	detail := fmt.Sprintf("%s: answered %d %s in %s", p.URL, p.Probed.Status, http.StatusText(p.Probed.Status), span(took))
	c := g.ok(p.Name, detail)
	switch s := p.Probed.Status; {
	case p.Probed.Credentials != transport.CredentialsUnknown || p.Probed.Peer:
	case s >= 300 && s < 400:
		c = g.failing(p.Name, detail+": redirects are never followed", "put the address that it leads to into url")
	case s == http.StatusNotFound, s == http.StatusForbidden, s == http.StatusProxyAuthRequired:
		c = g.failing(p.Name, detail+": nobody receives messages at this address, or something in between blocks them", "check whether url is right, and what a proxy lets through")
	case s >= 500:
		c = g.warning(p.Name, detail, "the other side, or a proxy in front of it, has a problem; see its log")
	case s >= 200 && s < 300:
		c = g.warning(p.Name, detail+" to a request that is not a message: it may be another program", "check whether url is right")
	}
	return c.with("answerSeconds", took.Seconds())
}

func judgeCredentials(g in, p PeerFound) Check {
	name := p.Name + " credentials"
	switch {
	case p.Probed.Credentials == transport.CredentialsAccepted:
		return g.ok(name, "the signature is accepted")
	case p.Probed.Credentials == transport.CredentialsRefused:
		detail, hint := "the signature is refused", "check that both sides have the same secret and that the other side knows this node by its id, and see what it logs"
		if off := offset(p).Abs(); off > clockOff {
			detail += fmt.Sprintf("; the clocks are %s apart", span(off))
		}
		return g.failing(name, detail, hint)
	case p.V1:
		return g.skipped(name, "a signature of v1 cannot be tried without delivering a message")
	}
	return g.skipped(name, "the other side does not know probes: only a message can show it")
}

// judgeReceiving judges the programs that messages are forwarded to. They get no request, because a request
// could have an effect.
func judgeReceiving(f *Findings) []Check {
	const g = in("Endpoints")
	var checks []Check
	for _, l := range f.Local {
		if l.Err != nil {
			checks = append(checks, g.warning(l.Endpoint, fmt.Sprintf("%s: %v", l.Address, l.Err), "start the program; until then messages are refused for now, and come again"))
			continue
		}
		checks = append(checks, g.ok(l.Endpoint, l.Address+" takes connections"))
	}
	return checks
}
