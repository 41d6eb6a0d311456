package exchange

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net/http"
)

// PlainFromTLS reports whether an exchange failed because the other side answered a TLS handshake
// in plain HTTP.
func PlainFromTLS(err error) bool {
	got, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok && string(got.RecordHeader[:]) == "HTTP/"
}

// PlainToTLS reports whether an answer is that of a TLS server to plain HTTP: Go's, nginx's or
// Apache's. There is no status for it.
func PlainToTLS(status int, body []byte) bool {
	if status != http.StatusBadRequest {
		return false
	}
	for _, text := range []string{
		"Client sent an HTTP request to an HTTPS server", "plain HTTP request was sent to HTTPS port", "speaking plain HTTP to an SSL-enabled server",
	} {
		if bytes.Contains(body[:min(len(body), 4096)], []byte(text)) {
			return true
		}
	}
	return false
}
