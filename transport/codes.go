package transport

import (
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// Codes of a client's Failures, in addition to the receiver's codes and "http_<status>".
const (
	CodeCanceled     = exchange.Canceled    // the caller stopped the attempt
	CodeTimeout      = exchange.Timeout     // no answer in time; the request had been sent
	CodeLost         = exchange.Lost        // the connection broke; the request had been sent
	CodeRefused      = exchange.Refused     // connection refused: nothing listens
	CodeNoRoute      = exchange.NoRoute     // no route to the peer
	CodeConnectTime  = exchange.ConnectTime // the connection was not accepted in time
	CodeConnect      = exchange.Connect     // no connection, for another reason
	CodeDNS          = exchange.DNS         // the name server does not answer
	CodeNoHost       = exchange.NoHost      // the host name does not exist
	CodeCertificate  = exchange.Certificate // the peer's certificate is not valid for its name
	CodeTLS          = exchange.TLS         // no agreement on TLS, or only one side speaks it
	CodeClientCert   = exchange.ClientCert  // the peer refuses our certificate
	CodeAccess       = exchange.Access      // no permission to open the socket file
	CodeNoAck        = "no_ack"             // success status without a reply of our protocol
	CodeReplyTooLong = "reply_too_large"
	CodeNoResult     = "no_result" // the reply to a batch leaves the message out
	CodeBusy         = "busy"      // others come first; nothing was begun
	CodeSignature    = "signature_refused"
	CodeCredential   = "credential_refused" //nolint:gosec // the name of a problem: it was refused, or there is none to show
	CodeWrongSource  = "wrong_site"         // the message names another source than the credential
)

// notStarted is the failure of a message for which nothing was done.
func notStarted(id holdfast.ID, err error) *holdfast.Failure {
	return &holdfast.Failure{
		Outcome: holdfast.NotStarted, Code: CodeCanceled,
		Err: fmt.Errorf("deliver message %s: not started: %w", id, err),
	}
}
