package config

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/socket"
)

func (r *report) checkDestination(path string, d Destination) {
	switch {
	case d.Call != nil && d.Write != nil:
		r.fault(path+".write", "", problem{"stands beside call, and a destination is one of the two", "make two destinations of it"})
	case d.Call != nil:
		r.checkCall(path, d)
	case d.Write != nil:
		r.checkWrite(path, d)
	default:
		r.checkPeer(path, d)
	}
	if first := d.Retry.FirstWait(); d.TTL >= time.Second && d.TTL < first {
		r.warn(path+".ttl", FormatDuration(d.TTL), problem{
			"ends before the first retry, after " + FormatDuration(first) + ", so that a message is attempted only once",
			"make it longer",
		})
	}
}

func (r *report) checkPeer(path string, d Destination) {
	if schemeOf(d.URL) == socket.Scheme {
		r.checkSocket(path+".url", d.URL)
	} else {
		r.checkURL(path+".url", d.URL, false)
	}
	r.checkSecret(path+".secret", d.Secret)
	if d.To != "" && d.HMAC == HMACv1 {
		r.fault(path+".to", d.To, problem{"has no meaning for hmac v1, whose signature covers no receiver", "remove it, or write hmac: v2"})
	}
	if scheme := schemeOf(d.URL); d.CA != "" && (scheme == "http" || scheme == socket.Scheme) {
		r.fault(path+".ca", d.CA, problem{"has no meaning for a url with " + scheme, "write https, or remove ca"})
	}
}

func (r *report) checkRetry(path string, t Retry) {
	r.foreign(path, t)
	if t.Policy == Exponential {
		r.checkExponential(path, t)
	}
	if t.Policy == List && t.Retries > 0 && t.Retries < len(t.Waits) {
		r.fault(path+".retries", strconv.Itoa(t.Retries), problem{
			fmt.Sprintf("is less than the %d waits, so that some are never used", len(t.Waits)),
			"remove retries or the last waits",
		})
	}
	noWaits := t.Policy == List && len(t.Waits) == 0 // and so no default for the retries
	if t.Retries != Unlimited && !noWaits && (t.Retries < 1 || t.Retries > maxRetries) {
		r.fault(path+".retries", strconv.Itoa(t.Retries), problem{"is out of bounds", fmt.Sprintf("write a number from 1 to %d, or 0 for no limit", maxRetries)})
	}
}

// foreign reports keys that belong to another policy.
func (r *report) foreign(path string, t Retry) {
	for _, f := range []struct {
		key  string
		of   Policy
		used bool
	}{
		{"base", Exponential, t.Base != 0},
		{"cap", Exponential, t.Cap != 0},
		{"factor", Exponential, t.Factor != 0},
		{"interval", Fixed, t.Interval != 0},
		{"waits", List, len(t.Waits) > 0},
	} {
		if f.of != t.Policy && (f.used || r.given(join(path, f.key))) {
			r.fault(join(path, f.key), "", problem{
				fmt.Sprintf("belongs to policy %s, not to %s", f.of, t.Policy),
				fmt.Sprintf("write policy: %s, or remove %s", f.of, f.key),
			})
		}
	}
}

func (r *report) checkExponential(path string, t Retry) {
	switch {
	case t.Base <= t.Cap || t.Cap < time.Millisecond || r.bad[path+".base"] || r.bad[path+".cap"]:
	case r.given(path+".cap") && !r.given(path+".base"):
		r.fault(path+".cap", FormatDuration(t.Cap), problem{
			"is shorter than base, " + FormatDuration(t.Base), "make cap " + FormatDuration(t.Base) + " or more, or set base",
		})
	default:
		r.fault(path+".base", FormatDuration(t.Base), problem{
			"is longer than cap, " + FormatDuration(t.Cap), "make base " + FormatDuration(t.Cap) + " or less, or cap longer",
		})
	}
}

func (r *report) checkWaits(path string, waits []time.Duration) {
	switch n := len(waits); {
	case n == 0:
		r.fault(path, "", problem{"has no waits", "write a list, such as [1s, 5s, 30s]"})
	case n > maxWaits:
		r.fault(path, "", problem{fmt.Sprintf("has %d waits", n), fmt.Sprintf("write at most %d; the last one repeats", maxWaits)})
	}
	for i, w := range waits {
		r.between(element(path, i), w, 0, maxTime)
	}
}

func formatFactor(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// checkURL accepts http and https. The value in a fault is without anything
// that could be a password or a token.
func (r *report) checkURL(path, raw string, query bool) {
	shown := secrets.URL(raw)
	bad := func(what, fix string) { r.fault(path, shown, problem{what, fix}) }
	if raw == "" {
		bad("is not set", "write a URL, such as http://127.0.0.1:8421")
		return
	}
	if strings.Contains(raw, hidden) {
		r.fault(path, "", notShown)
		return
	}
	u, err := url.Parse(raw)
	if err != nil { // its text holds the URL
		bad("is not a URL", "write one such as http://127.0.0.1:8421")
		return
	}
	switch u.Scheme {
	case "http", "https":
	case socket.Scheme:
		bad("uses unix, over which no program is called", "use http or https")
		return
	case "grpc", "pipe":
		fix := "use http, https or unix"
		if query {
			fix = "use http or https"
		}
		bad("uses "+u.Scheme+", over which this version does not deliver yet", fix)
		return
	default:
		bad("does not begin with http:// or https://", "write it such as http://127.0.0.1:8421")
		return
	}
	if u.Hostname() == "" {
		bad("names no host", "write it such as http://127.0.0.1:8421")
	}
	if n, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || n < 1 || n > 65535) {
		bad("has no port from 1 to 65535", "write it such as http://127.0.0.1:8421")
	}
	if u.User != nil {
		bad("holds credentials, which would be shown wherever the URL is", "remove them: messages are signed with a secret")
	}
	if !query && (u.RawQuery != "" || u.ForceQuery) {
		bad("has a query", "remove ? and what follows")
	}
	if strings.Contains(raw, "#") {
		bad("has a fragment, which is never sent", "remove # and what follows")
	}
}

// checkSocket accepts the name of a Unix socket.
func (r *report) checkSocket(path, raw string) {
	const fix = "write it such as unix:///run/holdfast/api.sock"
	file, ok := socket.Parse(raw)
	switch {
	case !ok:
		r.fault(path, secrets.URL(raw), problem{"is not the absolute path of a socket and nothing else", fix})
	case len(file) > socket.MaxPath:
		r.fault(path, raw, problem{fmt.Sprintf("has a path of %d bytes; a socket's may have %d", len(file), socket.MaxPath), "choose a shorter one"})
	default:
		r.checkPath(path, file)
	}
}

func schemeOf(raw string) string {
	scheme, _, _ := strings.Cut(raw, ":")
	return strings.ToLower(scheme)
}
