// Package exchange is the one HTTP client of all outgoing calls. It classifies an exchange that
// ended without an answer. It distinguishes what cannot have been accepted from what may have been,
// and what time cures from what somebody must change (design: section 7). It classifies by type and
// code; texts are for people.
//
// It promises that one Do sends at most one request. The size of an answer's header is limited, and
// so is the text of a failure. A connection that the other side closed while it was idle costs only
// another connection.
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
	"github.com/holdfast-mq/holdfast/internal/addressguard"
)

// Codes of the failures.
const (
	Canceled    = "canceled"           // the caller stopped the exchange
	Timeout     = "timeout"            // no answer in time; the request had been sent
	Lost        = "connection_lost"    // the connection broke; the request had been sent
	Refused     = "connection_refused" // nothing listens
	NoRoute     = "no_route"
	ConnectTime = "connect_timeout"
	Connect     = "connect_failed"
	DNS         = "dns_failed"
	NoHost      = "no_such_host"
	Certificate = "tls_certificate"    // the other side's certificate is not valid for its name
	TLS         = "tls_failed"         // no agreement on TLS, or only one side speaks it
	ClientCert  = "tls_client_refused" // the other side refuses our certificate
	Access      = "access_denied"      // no permission to open the socket file
	Forbidden   = "forbidden_address"  // the guard does not allow the address
)

// Failure classifies an exchange that ended without a response. left means that a byte of the
// request may have been sent.
func Failure(ctx context.Context, err error, left bool) *holdfast.Failure {
	fail := func(o holdfast.Outcome, code string) *holdfast.Failure {
		return &holdfast.Failure{Outcome: o, Code: code, Err: err}
	}
	if is[*addressguard.ForbiddenError](err) {
		return fail(holdfast.LaneFault, Forbidden)
	}
	if code := tlsFault(err); code != "" && (code != TLS || !left) {
		return fail(holdfast.LaneFault, code)
	}
	ended := ctx.Err()
	// An exchange that another party's deadline cut off was not stopped.
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
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist): // no socket file: nothing listens
		return fail(holdfast.Unreachable, Refused)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fail(holdfast.Unreachable, NoRoute)
	case ended != nil, isTimeout(err):
		return fail(holdfast.Unreachable, ConnectTime)
	}
	// Nothing was sent, so the message is not at fault.
	return fail(holdfast.Unreachable, Connect)
}

// Unconnected classifies a connection that failed before anything was sent over it, for any
// protocol.
func Unconnected(ctx context.Context, err error) *holdfast.Failure { return Failure(ctx, err, false) }

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// tlsFault returns the code of an error that no retry cures until somebody changes a certificate or
// an address.
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
		case 42, 43, 44, 45, 46, 48, 49, 116: // RFC 8446, section 6.2: alerts about certificates and access
			return ClientCert
		}
		return TLS
	}
	return ""
}

// remoteAlert returns the number of a TLS alert from the peer. crypto/tls does not export its type
// for it; only the number is accessible.
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
