package config

import (
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/internal/setting"
	"github.com/holdfast-mq/holdfast/internal/socket"
)

func checkDestination(r *setting.Report, path string, d Destination) {
	if d.Foreign != nil {
		checkForeign(r, path, d)
	} else {
		checkPeer(r, path, d)
	}
	if first := d.Retry.FirstWait(); d.TTL >= time.Second && d.TTL < first {
		r.Warn(path+".ttl", setting.FormatDuration(d.TTL), setting.Problem{
			What: "ends before the first retry, after " + setting.FormatDuration(first) + ", so that a message is attempted only once",
			Fix:  "make it longer",
		})
	}
}

func checkForeign(r *setting.Report, path string, d Destination) {
	k := d.Foreign.Kind()
	notOfPeer(r, path, d, k)
	d.Foreign.Check(r, path+"."+k.Key.Name)
}

// notOfPeer reports keys of a peer next to those of a kind.
func notOfPeer(r *setting.Report, path string, d Destination, k adapter.Kind) {
	for _, f := range []struct {
		key  string
		used bool
	}{{"url", d.URL != ""}, {"secret", !d.Secret.IsZero()}, {"hmac", d.HMAC == HMACv1}, {"to", d.To != ""}, {"ca", d.CA != ""}} {
		if at := path + "." + f.key; f.used || r.Given(at) {
			r.Fault(at, "", setting.Problem{What: "belongs to a peer, but this destination is " + k.Noun, Fix: "remove it, or remove " + k.Key.Name + "; " + k.Instead})
		}
	}
}

func checkPeer(r *setting.Report, path string, d Destination) {
	if setting.SchemeOf(d.URL) == socket.Scheme {
		r.CheckSocket(path+".url", d.URL)
	} else {
		r.CheckURL(path+".url", d.URL, false)
	}
	r.CheckSecret(path+".secret", d.Secret)
	if d.To != "" && d.HMAC == HMACv1 {
		r.Fault(path+".to", d.To, setting.Problem{What: "has no meaning for hmac v1, whose signature covers no receiver", Fix: "remove it, or write hmac: v2"})
	}
	if scheme := setting.SchemeOf(d.URL); d.CA != "" && (scheme == "http" || scheme == socket.Scheme) {
		r.Fault(path+".ca", d.CA, setting.Problem{What: "has no meaning for a url with " + scheme, Fix: "write https, or remove ca"})
	}
}

func checkRetry(r *setting.Report, path string, t Retry) {
	foreign(r, path, t)
	if t.Policy == Exponential {
		checkExponential(r, path, t)
	}
	if t.Policy == List && t.Retries > 0 && t.Retries < len(t.Waits) {
		r.Fault(path+".retries", strconv.Itoa(t.Retries), setting.Problem{
			What: fmt.Sprintf("is less than the %d waits, so that some are never used", len(t.Waits)),
			Fix:  "remove retries or the last waits",
		})
	}
	noWaits := t.Policy == List && len(t.Waits) == 0 // without waits, the retries have no default
	if t.Retries != Unlimited && !noWaits && (t.Retries < 1 || t.Retries > maxRetries) {
		r.Fault(path+".retries", strconv.Itoa(t.Retries), setting.Problem{What: "is out of bounds", Fix: fmt.Sprintf("write a number from 1 to %d, or 0 for no limit", maxRetries)})
	}
}

// foreign reports keys that belong to another policy.
func foreign(r *setting.Report, path string, t Retry) {
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
		if f.of != t.Policy && (f.used || r.Given(setting.Join(path, f.key))) {
			r.Fault(setting.Join(path, f.key), "", setting.Problem{
				What: fmt.Sprintf("belongs to policy %s, not to %s", f.of, t.Policy),
				Fix:  fmt.Sprintf("write policy: %s, or remove %s", f.of, f.key),
			})
		}
	}
}

func checkExponential(r *setting.Report, path string, t Retry) {
	switch {
	case t.Base <= t.Cap || t.Cap < time.Millisecond || r.Bad[path+".base"] || r.Bad[path+".cap"]:
	case r.Given(path+".cap") && !r.Given(path+".base"):
		r.Fault(path+".cap", setting.FormatDuration(t.Cap), setting.Problem{
			What: "is shorter than base, " + setting.FormatDuration(t.Base), Fix: "make cap " + setting.FormatDuration(t.Base) + " or more, or set base",
		})
	default:
		r.Fault(path+".base", setting.FormatDuration(t.Base), setting.Problem{
			What: "is longer than cap, " + setting.FormatDuration(t.Cap), Fix: "make base " + setting.FormatDuration(t.Cap) + " or less, or cap longer",
		})
	}
}

func checkWaits(r *setting.Report, path string, waits []time.Duration) {
	switch n := len(waits); {
	case n == 0:
		r.Fault(path, "", setting.Problem{What: "has no waits", Fix: "write a list, such as [1s, 5s, 30s]"})
	case n > maxWaits:
		r.Fault(path, "", setting.Problem{What: fmt.Sprintf("has %d waits", n), Fix: fmt.Sprintf("write at most %d; the last one repeats", maxWaits)})
	}
	for i, w := range waits {
		r.Between(setting.Element(path, i), w, 0, setting.MaxTime)
	}
}

func formatFactor(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
