// Package socket says how a Unix socket is named in settings, on the command
// line and between nodes: unix:///path/of/socket. It opens nothing.
package socket

import (
	"net/url"
	"path/filepath"
	"runtime"
)

// Scheme is what such a name begins with, before the colon.
const Scheme = "unix"

// MaxPath is the longest path that every system takes, in bytes.
const MaxPath = 103

// Path returns the path that u names, and false if u does not name a socket
// by an absolute path. On Windows a path has its drive: unix:///C:/dir/name.
func Path(u *url.URL) (string, bool) {
	if u.Scheme != Scheme || u.Host != "" || u.Opaque != "" || len(u.Path) < 2 || u.Path[0] != '/' {
		return "", false
	}
	if runtime.GOOS == "windows" && len(u.Path) > 2 && u.Path[2] == ':' {
		return filepath.FromSlash(u.Path[1:]), true
	}
	return u.Path, true
}

// Parse is Path for the name as a text, which must hold nothing else.
func Parse(name string) (string, bool) {
	u, err := url.Parse(name)
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", false
	}
	return Path(u)
}

// URL names the socket at an absolute path.
func URL(path string) string {
	slashed := filepath.ToSlash(path)
	if slashed != "" && slashed[0] != '/' {
		slashed = "/" + slashed
	}
	return (&url.URL{Scheme: Scheme, Path: slashed}).String()
}
