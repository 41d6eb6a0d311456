package transport

import (
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// Codes of a client's Failures, beside those that a receiver gives and
// "http_<status>".
const (
	CodeCanceled     = exchange.Canceled    // stopped by the caller
	CodeTimeout      = exchange.Timeout     // no answer in time, after the request had left
	CodeLost         = exchange.Lost        // the same, by a broken connection
	CodeRefused      = exchange.Refused     // nobody listens
	CodeNoRoute      = exchange.NoRoute     // no way there
	CodeConnectTime  = exchange.ConnectTime // nobody has picked up
	CodeConnect      = exchange.Connect     // no connection for another reason
	CodeDNS          = exchange.DNS         // the name server does not answer
	CodeNoHost       = exchange.NoHost      // there is no such name
	CodeCertificate  = exchange.Certificate // the peer's certificate is not good for its name
	CodeTLS          = exchange.TLS         // the two sides do not agree on TLS, or only one speaks it
	CodeClientCert   = exchange.ClientCert  // the peer refuses our certificate
	CodeAccess       = exchange.Access      // a socket file that we may not open
	CodeNoAck        = "no_ack"             // success without a reply of ours
	CodeReplyTooLong = "reply_too_large"
	CodeNoResult     = "no_result" // a batch's reply leaves the message out
	CodeBusy         = "busy"      // others come first; nothing was begun
	CodeSignature    = "signature_refused"
	CodeCredential   = "credential_refused" //nolint:gosec // the name of a problem: it was refused, or there is none to show
	CodeWrongSource  = "wrong_site"         // the message names another source than the credential
)

// notStarted is the outcome of a message for which nothing was done.
func notStarted(id holdfast.ID, err error) *holdfast.Failure {
	return &holdfast.Failure{
		Outcome: holdfast.NotStarted, Code: CodeCanceled,
		Err: fmt.Errorf("deliver message %s: not started: %w", id, err),
	}
}
