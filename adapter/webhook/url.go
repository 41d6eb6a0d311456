package webhook

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// mostURL is the longest URL, in bytes. The Notificaties API sets no limit.
const mostURL = 8 << 10

// parseURL reads the URL of a target. Its host is then in the one form in which it is checked, looked
// up and sent. Errors quote no part of it, which may be a secret.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("is missing")
	case len(text) > mostURL:
		return nil, errors.New("has more than 8192 bytes")
	case err != nil || u.Opaque != "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("is not a URL: it must begin with https:// or http:// and name a host")
	case u.User != nil:
		return nil, errors.New("holds credentials, which would be shown wherever the URL is: use authorization")
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || n == 0) {
		return nil, errors.New("has a port that does not exist")
	}
	u.Fragment, u.RawFragment = "", ""
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return u, nil
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil {
		ascii = strings.ToLower(host) // some names in private networks have underscores
	}
	if strings.ContainsFunc(ascii, isNoHost) || strings.Contains(ascii, "..") || ascii[0] == '.' || len(ascii) > 254 {
		return nil, errors.New("names a host that cannot exist")
	}
	u.Host = strings.TrimSuffix(ascii+":"+u.Port(), ":")
	return u, nil
}

func isNoHost(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}
