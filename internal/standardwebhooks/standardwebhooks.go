// Package standardwebhooks signs and verifies requests as in Standard Webhooks 1.0
// (https://www.standardwebhooks.com), for all that we post to foreign receivers and for receivers
// of ours. A signature covers id, time and body: HMAC-SHA256 with a shared secret (v1), or Ed25519
// with a key pair (v1a). A receiver can check who sent the request, that it was not changed, that
// it is fresh, and whether it has come before.
package standardwebhooks

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a request.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// Sign sets the three headers. The id is the same in each attempt; the time is that of the attempt.
// There is one signature per signer: while a secret is being replaced, a receiver finds one that it
// can check. The order of the signatures is that of the signers.
func Sign(h http.Header, id string, at time.Time, body []byte, signers ...Signer) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	content := signed(id, seconds, body)
	signatures := make([]string, len(signers))
	for i := range signers {
		signatures[i] = signers[i].sign(content)
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, seconds)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}

// signed is what a signature covers.
func signed(id, seconds string, body []byte) []byte {
	content := make([]byte, 0, len(id)+len(seconds)+len(body)+2)
	content = append(content, id...)
	content = append(content, '.')
	content = append(content, seconds...)
	content = append(content, '.')
	return append(content, body...)
}
