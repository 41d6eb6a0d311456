package secrets

import (
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// Plain reports whether a header never carries a credential. The value of any other header may be
// one, whatever its name.
func Plain(header string) bool {
	return slices.Contains([]string{
		"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Cache-Control",
		"Content-Encoding", "Content-Language", "Content-Type", "Date", "Prefer", "User-Agent",
	}, textproto.CanonicalMIMEHeaderKey(header))
}

// InQuery reports whether the query of a URL has a value whose name denotes a secret.
func InQuery(u *url.URL) bool {
	for name := range u.Query() {
		if Names(name) {
			return true
		}
	}
	return false
}

// URL returns a URL in a form that may be shown: without user and password, and without the values
// of its query, whatever their names. Placeholders in braces are kept. A text that is no URL is
// treated as one.
func URL(text string) string {
	text, fragment, _ := strings.Cut(text, "#")
	text, query, _ := strings.Cut(text, "?")
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		rest = text
	}
	// In a broken URL it is unknown where the password ends.
	if u, err := url.Parse(text); err != nil || u.User != nil || u.Host == "" {
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			text = strings.TrimSuffix(text, rest) + Mark + rest[at:]
		}
	}
	if query != "" {
		parts := strings.Split(query, "&")
		for i, part := range parts {
			name, value, named := strings.Cut(part, "=")
			switch {
			case !named && part != "":
				parts[i] = Mark
			case value != "" && !isPlaceholder(value):
				parts[i] = name + "=" + Mark
			}
		}
		text += "?" + strings.Join(parts, "&")
	}
	if fragment != "" {
		text += "#" + Mark
	}
	return text
}

func isPlaceholder(value string) bool {
	inner, opened := strings.CutPrefix(value, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	return opened && closed && !strings.ContainsAny(inner, "{}")
}
