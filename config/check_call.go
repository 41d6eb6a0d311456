package config

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// notShown is said of what was printed for people and not written by one.
var notShown = problem{"has " + hidden + " in the place of what was not shown", "write the value itself"} //nolint:gochecknoglobals // a constant

func (r *report) checkCall(path string, d Destination) {
	c := *d.Call
	r.notOfPeer(path, d, "call", "a call", "a call has its own url and ca")
	path += ".call"
	r.checkTarget(path+".url", c.URL)
	r.checkAuth(path+".auth", c.Auth)
	if (c.Cert == "") != (c.Key == "") && !r.bad[path+".cert"] && !r.bad[path+".key"] {
		r.fault(path, "", problem{"has one of cert and key", "name both files, or neither"})
	}
	if (c.CA != "" || c.Cert != "") && schemeOf(c.URL) == "http" {
		r.fault(path+".url", secrets.URL(c.URL), problem{"uses http, for which ca, cert and key have no meaning", "write https, or remove them"})
	}
}

// checkTarget accepts a URL with placeholders behind its host.
func (r *report) checkTarget(path, raw string) {
	plain := strings.NewReplacer("{endpoint}", "x", "{id}", "x").Replace(raw)
	switch _, rest, found := strings.Cut(raw, "://"); {
	case strings.Contains(raw, hidden):
		r.fault(path, "", notShown)
	case strings.ContainsAny(plain, "{}"):
		r.fault(path, secrets.URL(raw), problem{"has a placeholder that is neither {endpoint} nor {id}", "use one of these two, or write %7B and %7D for braces"})
	case found && strings.Contains(strings.SplitN(rest, "/", 2)[0], "{"):
		r.fault(path, secrets.URL(raw), problem{"has a placeholder in its host", "placeholders may stand behind the host only"})
	case strings.Contains(plain, "@") && strings.Contains(strings.SplitN(rest, "/", 2)[0], "@"):
		r.fault(path, secrets.URL(raw), problem{"holds credentials, which would be shown wherever the URL is", "remove them, and use auth"})
	default:
		r.checkURL(path, plain, true)
	}
}

func (r *report) checkHeaders(path string, headers map[string]string) {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at, canonical := join(path, name), http.CanonicalHeaderKey(name)
		ours := canonical == "Idempotency-Key" || strings.HasPrefix(canonical, "Holdfast-")
		switch value := headers[name]; {
		case name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) }):
			r.fault(at, "", problem{"is not the name of a header", "use letters, digits and -"})
		case canonical == "Authorization" || canonical == "Proxy-Authorization" || canonical == "Cookie":
			r.fault(at, "", problem{"would be a secret in the file", "use auth"})
		case ours || slices.Contains([]string{"Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade"}, canonical):
			r.fault(at, "", problem{"is set for each call", "remove it"})
		case strings.Contains(value, hidden):
			r.fault(at, "", notShown)
		case strings.ContainsFunc(value, func(c rune) bool { return unicode.IsControl(c) && c != '\t' }):
			r.fault(at, "", problem{"has a control character in its value", "remove it"})
		case seen[canonical]:
			r.fault(at, "", problem{"is there in another spelling as well", "keep one of them"})
		}
		if headers[name] != "" && secrets.Names(name) {
			r.warn(at, "", problem{"looks like a secret, which everybody sees who may read this file", "use auth: {key: {header: " + name + ", value: {file: PATH}}}"})
		}
		seen[canonical] = true
	}
}

func (r *report) checkAuth(path string, a Auth) {
	ways := 0
	for key, used := range map[string]bool{"basic": a.Basic != nil, "bearer": !a.Bearer.IsZero(), "key": a.Key != nil, "oauth2": a.OAuth2 != nil} {
		if used || r.given(join(path, key)) {
			ways++
		}
	}
	if ways > 1 {
		r.fault(path, "", problem{"has several ways", "keep one of basic, bearer, key and oauth2"})
		return
	}
	if a.Basic != nil {
		r.wants(path+".basic.user", a.Basic.User)
		if strings.Contains(a.Basic.User, ":") {
			r.fault(path+".basic.user", a.Basic.User, problem{"has a colon, which ends a user's name", "use another name"})
		}
		r.wantsSecret(path+".basic.password", a.Basic.Password)
	}
	if r.given(path + ".bearer") {
		r.wantsSecret(path+".bearer", a.Bearer)
	}
	if a.Key != nil {
		r.checkHeaders(path+".key", map[string]string{a.Key.Header: ""})
		r.wantsSecret(path+".key.value", a.Key.Value)
	}
	if a.OAuth2 != nil {
		r.checkURL(path+".oauth2.url", a.OAuth2.URL, true)
		r.wants(path+".oauth2.client", a.OAuth2.Client)
		r.wantsSecret(path+".oauth2.secret", a.OAuth2.Secret)
	}
}

func (r *report) checkScope(path, s string) {
	if s == "" || strings.ContainsAny(s, " \"\\") {
		r.fault(path, s, problem{"is no scope", "write one scope per element, without spaces"})
	}
}

func (r *report) wants(path, value string) {
	if value == "" {
		r.fault(path, "", problem{"is not set", "write it"})
	}
}

func (r *report) wantsSecret(path string, s Secret) {
	if s.IsZero() && !r.bad[path] {
		r.fault(path, "", problem{"is missing", passwordFix})
	}
}

func (r *report) checkStatuses(path string, list []Statuses) {
	for i, s := range list {
		if s.First < 200 || s.Last > 599 || s.First > s.Last {
			r.fault(element(path, i), s.String(), problem{"is no range of status codes", "write codes from 200 to 599, the lower one first"})
		}
	}
}
