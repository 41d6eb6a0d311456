// Package exchange is the one HTTP client of all that calls others, and says of
// an exchange that ended without an answer what that means: what nobody can have
// taken is told from what may have been taken, and what waiting cures from what
// somebody must change (design: section 7). By type and code; texts are for people.
//
// It promises that one Do is one request at the most, that the beginning of an
// answer is bounded, as is what is told of it, and that a connection that the other
// side closed while it was idle costs nothing but another connection.
package exchange

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"reflect"
	"syscall"

	"github.com/holdfast-mq/holdfast"
)

// Codes of the failures.
const (
	Canceled    = "canceled"           // stopped by the caller
	Timeout     = "timeout"            // no answer in time, after the request had left
	Lost        = "connection_lost"    // the same, by a broken connection
	Refused     = "connection_refused" // nobody listens
	NoRoute     = "no_route"
	ConnectTime = "connect_timeout"
	Connect     = "connect_failed"
	DNS         = "dns_failed"
	NoHost      = "no_such_host"
	Certificate = "tls_certificate"    // the other side's certificate is not good for its name
	TLS         = "tls_failed"         // the two sides do not agree on TLS, or only one speaks it
	ClientCert  = "tls_client_refused" // the other side refuses our certificate
	Access      = "access_denied"      // a socket file that we may not open
)

// Failure classifies an exchange that ended without a response. left says that a
// byte of the request may have left.
func Failure(ctx context.Context, err error, left bool) *holdfast.Failure {
	fail := func(o holdfast.Outcome, code string) *holdfast.Failure {
		return &holdfast.Failure{Outcome: o, Code: code, Err: err}
	}
	if code := tlsFault(err); code != "" && (code != TLS || !left) {
		return fail(holdfast.LaneFault, code)
	}
	ended := ctx.Err()
	// What somebody else's deadline cut off was not stopped.
	canceled := errors.Is(ended, context.Canceled) && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
	if left {
		f := fail(holdfast.Transient, Lost)
		f.MaybeDelivered = true
		switch {
		case canceled:
			f.Code = Canceled
		case ended != nil || isTimeout(err):
			f.Code = Timeout
		}
		return f
	}
	if canceled {
		return fail(holdfast.NotStarted, Canceled)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return fail(holdfast.LaneFault, NoHost)
		}
		return fail(holdfast.Unreachable, DNS)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fail(holdfast.LaneFault, Access)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist): // no socket file: nobody listens
		return fail(holdfast.Unreachable, Refused)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fail(holdfast.Unreachable, NoRoute)
	case ended != nil, isTimeout(err):
		return fail(holdfast.Unreachable, ConnectTime)
	}
	// Nothing left, whatever it was: not the message's fault.
	return fail(holdfast.Unreachable, Connect)
}

// Unconnected classifies a connection that came to nothing before anything was
// asked over it, whatever is spoken on it.
func Unconnected(ctx context.Context, err error) *holdfast.Failure { return Failure(ctx, err, false) }

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
		return Certificate
	case is[tls.RecordHeaderError](err):
		return TLS
	}
	if alert, ok := remoteAlert(err); ok {
		switch alert {
		case 42, 43, 44, 45, 46, 48, 49, 116: // RFC 8446, section 6.2: those about certificates and access
			return ClientCert
		}
		return TLS
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
