// Package socket defines how settings, the command line and nodes name a Unix socket:
// unix:///path/of/socket. It opens nothing.
package socket

import (
	"net/url"
	"path/filepath"
	"runtime"
)

// Scheme is the scheme of such a name, the part before the colon.
const Scheme = "unix"

// MaxPath is the longest path that every system accepts, in bytes.
const MaxPath = 103

// Path returns the path that u names. It returns false if u does not name a socket by an absolute
// path. On Windows a path includes its drive: unix:///C:/dir/name.
func Path(u *url.URL) (string, bool) {
	if u.Scheme != Scheme || u.Host != "" || u.Opaque != "" || len(u.Path) < 2 || u.Path[0] != '/' {
		return "", false
	}
	if runtime.GOOS == "windows" && len(u.Path) > 2 && u.Path[2] == ':' {
		return filepath.FromSlash(u.Path[1:]), true
	}
	return u.Path, true
}

// Parse is Path for a text, which must hold nothing else.
func Parse(name string) (string, bool) {
	u, err := url.Parse(name)
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", false
	}
	return Path(u)
}

// URL returns the name of the socket at an absolute path.
func URL(path string) string {
	slashed := filepath.ToSlash(path)
	if slashed != "" && slashed[0] != '/' {
		slashed = "/" + slashed
	}
	return (&url.URL{Scheme: Scheme, Path: slashed}).String()
}
