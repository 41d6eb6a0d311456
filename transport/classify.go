package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"sync/atomic"
	"syscall"

	"github.com/holdfast-mq/holdfast"
)

// Codes of a client's Failures, beside those that a receiver gives and
// "http_<status>".
const (
	CodeCanceled     = "canceled"           // stopped by the caller
	CodeTimeout      = "timeout"            // no answer in time, after the request had left
	CodeLost         = "connection_lost"    // the same, by a broken connection
	CodeRefused      = "connection_refused" // nobody listens
	CodeNoRoute      = "no_route"
	CodeConnectTime  = "connect_timeout"
	CodeConnect      = "connect_failed"
	CodeDNS          = "dns_failed"
	CodeNoHost       = "no_such_host"
	CodeCertificate  = "tls_certificate"    // the peer's certificate is not good for its name
	CodeTLS          = "tls_failed"         // the two sides do not agree on TLS, or only one speaks it
	CodeClientCert   = "tls_client_refused" // the peer refuses our certificate
	CodeAccess       = "access_denied"      // a socket file that we may not open
	CodeNoAck        = "no_ack"             // success without a reply of ours
	CodeReplyTooLong = "reply_too_large"
	CodeNoResult     = "no_result" // a batch's reply leaves the message out
	CodeSignature    = "signature_refused"
)

// progress tells, from net/http's trace, whether a byte of a request can have
// left. It stays true over net/http's own second try of a reused connection.
type progress struct{ traced, wrote atomic.Bool }

func (p *progress) attach(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { p.traced.Store(true) },
		// The headers are in the buffer in front of the connection, not yet on
		// it: from here on nobody knows.
		WroteHeaders: func() { p.wrote.Store(true) },
	})
}

// mayHaveLeft is on the safe side: without a trace only a failed dial proves
// that nothing left.
func (p *progress) mayHaveLeft(err error) bool {
	if p.wrote.Load() {
		return true
	}
	if p.traced.Load() {
		return false
	}
	op, ok := errors.AsType[*net.OpError](err)
	return !ok || op.Op != "dial"
}

// exchangeFailure classifies an exchange that ended without a response
// (design: section 7). By type and code; texts are for people.
func exchangeFailure(ctx context.Context, err error, p *progress) *holdfast.Failure {
	fail := func(o holdfast.Outcome, code string) *holdfast.Failure {
		return &holdfast.Failure{Outcome: o, Code: code, Err: err}
	}
	if code := tlsFault(err); code != "" && (code != CodeTLS || !p.mayHaveLeft(err)) {
		return fail(holdfast.LaneFault, code)
	}
	ended := ctx.Err()
	if p.mayHaveLeft(err) {
		f := fail(holdfast.Transient, CodeLost)
		f.MaybeDelivered = true
		switch {
		case errors.Is(ended, context.Canceled):
			f.Code = CodeCanceled
		case ended != nil || isTimeout(err):
			f.Code = CodeTimeout
		}
		return f
	}
	if errors.Is(ended, context.Canceled) {
		return fail(holdfast.NotStarted, CodeCanceled)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return fail(holdfast.LaneFault, CodeNoHost)
		}
		return fail(holdfast.Unreachable, CodeDNS)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fail(holdfast.LaneFault, CodeAccess)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist): // no socket file: nobody listens
		return fail(holdfast.Unreachable, CodeRefused)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fail(holdfast.Unreachable, CodeNoRoute)
	case ended != nil, isTimeout(err):
		return fail(holdfast.Unreachable, CodeConnectTime)
	}
	// Nothing left, whatever it was: not the message's fault.
	return fail(holdfast.Unreachable, CodeConnect)
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// tlsFault returns the code of an error that no repetition cures before
// somebody changes a certificate or an address.
func tlsFault(err error) string {
	switch {
	case is[*tls.CertificateVerificationError](err), is[x509.UnknownAuthorityError](err),
		is[x509.HostnameError](err), is[x509.CertificateInvalidError](err), is[x509.SystemRootsError](err):
		return CodeCertificate
	case is[tls.RecordHeaderError](err), errors.Is(err, http.ErrSchemeMismatch):
		return CodeTLS
	}
	if alert, ok := remoteAlert(err); ok {
		switch alert {
		case 42, 43, 44, 45, 46, 48, 49, 116: // RFC 8446, section 6.2: those about certificates and access
			return CodeClientCert
		}
		return CodeTLS
	}
	return ""
}

// remoteAlert returns the number of a TLS alert that the peer sent. The type
// that crypto/tls uses for it is not exported; the number is all there is.
func remoteAlert(err error) (uint64, bool) {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" || op.Err == nil {
		return 0, false
	}
	v := reflect.ValueOf(op.Err)
	if v.Kind() != reflect.Uint8 {
		return 0, false
	}
	return v.Uint(), true
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// notStarted is the outcome of a message for which nothing was done.
func notStarted(id holdfast.ID, err error) *holdfast.Failure {
	return &holdfast.Failure{
		Outcome: holdfast.NotStarted, Code: CodeCanceled,
		Err: fmt.Errorf("deliver message %s: not started: %w", id, err),
	}
}
