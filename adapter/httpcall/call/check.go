package call

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Check finds faults that involve several keys.
func (c *Settings) Check(r *setting.Report, path string) {
	checkTarget(r, path+".url", c.URL)
	checkAuth(r, path+".auth", c.Auth)
	if (c.Cert == "") != (c.Key == "") && !r.Bad[path+".cert"] && !r.Bad[path+".key"] {
		r.Fault(path, "", setting.Problem{What: "has one of cert and key", Fix: "name both files, or neither"})
	}
	if (c.CA != "" || c.Cert != "") && setting.SchemeOf(c.URL) == "http" {
		r.Fault(path+".url", secrets.URL(c.URL), setting.Problem{What: "uses http, for which ca, cert and key have no meaning", Fix: "write https, or remove them"})
	}
}

// checkTarget accepts a URL with placeholders after its host.
func checkTarget(r *setting.Report, path, raw string) {
	plain := strings.NewReplacer("{endpoint}", "x", "{id}", "x").Replace(raw)
	switch _, rest, found := strings.Cut(raw, "://"); {
	case strings.Contains(raw, setting.Hidden):
		r.Fault(path, "", setting.NotShown)
	case strings.ContainsAny(plain, "{}"):
		r.Fault(path, secrets.URL(raw), setting.Problem{What: "has a placeholder that is neither {endpoint} nor {id}", Fix: "use one of these two, or write %7B and %7D for braces"})
	case found && strings.Contains(strings.SplitN(rest, "/", 2)[0], "{"):
		r.Fault(path, secrets.URL(raw), setting.Problem{What: "has a placeholder in its host", Fix: "placeholders may stand behind the host only"})
	case strings.Contains(plain, "@") && strings.Contains(strings.SplitN(rest, "/", 2)[0], "@"):
		r.Fault(path, secrets.URL(raw), setting.Problem{What: "holds credentials, which would be shown wherever the URL is", Fix: "remove them, and use auth"})
	default:
		r.CheckURL(path, plain, true)
	}
}

func checkHeaders(r *setting.Report, path string, headers map[string]string) {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at, canonical := setting.Join(path, name), http.CanonicalHeaderKey(name)
		ours := canonical == "Idempotency-Key" || strings.HasPrefix(canonical, "Holdfast-")
		switch value := headers[name]; {
		case name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) }):
			r.Fault(at, "", setting.Problem{What: "is not the name of a header", Fix: "use letters, digits and -"})
		case canonical == "Authorization" || canonical == "Proxy-Authorization" || canonical == "Cookie":
			r.Fault(at, "", setting.Problem{What: "would be a secret in the file", Fix: "use auth"})
		case ours || slices.Contains([]string{"Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade"}, canonical):
			r.Fault(at, "", setting.Problem{What: "is set for each call", Fix: "remove it"})
		case strings.Contains(value, setting.Hidden):
			r.Fault(at, "", setting.NotShown)
		case strings.ContainsFunc(value, func(c rune) bool { return unicode.IsControl(c) && c != '\t' }):
			r.Fault(at, "", setting.Problem{What: "has a control character in its value", Fix: "remove it"})
		case seen[canonical]:
			r.Fault(at, "", setting.Problem{What: "is also set in another spelling", Fix: "keep one of them"})
		}
		if headers[name] != "" && secrets.Names(name) {
			r.Warn(at, "", setting.Problem{What: "looks like a secret, which everybody sees who may read this file", Fix: "use auth: {key: {header: " + name + ", value: {file: PATH}}}"})
		}
		seen[canonical] = true
	}
}

func checkAuth(r *setting.Report, path string, a Auth) {
	ways := 0
	for key, used := range map[string]bool{"basic": a.Basic != nil, "bearer": !a.Bearer.IsZero(), "key": a.Key != nil, "oauth2": a.OAuth2 != nil} {
		if used || r.Given(setting.Join(path, key)) {
			ways++
		}
	}
	if ways > 1 {
		r.Fault(path, "", setting.Problem{What: "has more than one method", Fix: "keep one of basic, bearer, key and oauth2"})
		return
	}
	if a.Basic != nil {
		r.Wants(path+".basic.user", a.Basic.User)
		if strings.Contains(a.Basic.User, ":") {
			r.Fault(path+".basic.user", a.Basic.User, setting.Problem{What: "has a colon, which ends a user's name", Fix: "use another name"})
		}
		r.WantsSecret(path+".basic.password", a.Basic.Password)
	}
	if r.Given(path + ".bearer") {
		r.WantsSecret(path+".bearer", a.Bearer)
	}
	if a.Key != nil {
		checkHeaders(r, path+".key", map[string]string{a.Key.Header: ""})
		r.WantsSecret(path+".key.value", a.Key.Value)
	}
	if a.OAuth2 != nil {
		r.CheckURL(path+".oauth2.url", a.OAuth2.URL, true)
		r.Wants(path+".oauth2.client", a.OAuth2.Client)
		r.WantsSecret(path+".oauth2.secret", a.OAuth2.Secret)
	}
}

func checkScope(r *setting.Report, path, s string) {
	if s == "" || strings.ContainsAny(s, " \"\\") {
		r.Fault(path, s, setting.Problem{What: "is not a scope", Fix: "write one scope per element, without spaces"})
	}
}

func checkStatuses(r *setting.Report, path string, list []Statuses) {
	for i, s := range list {
		if s.First < 200 || s.Last > 599 || s.First > s.Last {
			r.Fault(setting.Element(path, i), s.String(), setting.Problem{What: "is not a range of status codes", Fix: "write codes from 200 to 599, the lower one first"})
		}
	}
}
