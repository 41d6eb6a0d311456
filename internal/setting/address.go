package setting

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/socket"
)

// CheckURL accepts http and https URLs. The value in a fault leaves out everything that could be a password or a token.
func (r *Report) CheckURL(path, raw string, query bool) {
	shown := secrets.URL(raw)
	bad := func(what, fix string) { r.Fault(path, shown, Problem{what, fix}) }
	if raw == "" {
		bad("is not set", "write a URL, such as http://127.0.0.1:8421")
		return
	}
	if strings.Contains(raw, Hidden) {
		r.Fault(path, "", NotShown)
		return
	}
	u, err := url.Parse(raw)
	if err != nil { // the error's text holds the URL
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

// CheckSocket accepts the name of a Unix socket.
func (r *Report) CheckSocket(path, raw string) {
	const fix = "write it such as unix:///run/holdfast/api.sock"
	file, ok := socket.Parse(raw)
	switch {
	case !ok:
		r.Fault(path, secrets.URL(raw), Problem{"is not the absolute path of a socket and nothing else", fix})
	case len(file) > socket.MaxPath:
		r.Fault(path, raw, Problem{fmt.Sprintf("has a path of %d bytes; a socket's may have %d", len(file), socket.MaxPath), "choose a shorter one"})
	default:
		r.checkPath(path, file)
	}
}

// SchemeOf returns the scheme of a URL, in lower case.
func SchemeOf(raw string) string {
	scheme, _, _ := strings.Cut(raw, ":")
	return strings.ToLower(scheme)
}
