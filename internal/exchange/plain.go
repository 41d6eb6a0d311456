package exchange

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net/http"
)

// PlainFromTLS says whether an exchange failed because who was asked for TLS
// speaks plain HTTP.
func PlainFromTLS(err error) bool {
	got, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok && string(got.RecordHeader[:]) == "HTTP/"
}

// PlainToTLS says whether an answer is what servers of TLS say to who speaks
// plain HTTP to them: Go's, nginx, Apache. There is no code for it.
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
