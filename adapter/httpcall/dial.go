package httpcall

import (
	"crypto/tls"
	"errors"
	"net"
)

// dialFailed says whether no connection came about, so that certainly nothing
// was taken.
func dialFailed(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// badCertificate says whether the handshake failed, before any data left.
func badCertificate(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}
