package standardwebhooks

import (
	"crypto/ed25519"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Errors of Verify.
var (
	ErrHeaders = errors.New("a header of Standard Webhooks is missing or malformed")
	ErrTime    = errors.New("the time of the request is outside the tolerance")
	ErrForged  = errors.New("no signature matches")
)

// maxSignatures bounds the work that one request can cause.
const maxSignatures = 16

// Verifier checks signatures of one secret. The zero value accepts nothing. Concurrent use is safe.
type Verifier struct {
	shared []byte
	public ed25519.PublicKey
}

// NewVerifier returns the verifier for a secret: "whpk_" and the public half of an Ed25519 pair, or
// a shared secret as in NewSigner. A private key is refused: a receiver must not have it. Errors
// quote nothing of the secret.
func NewVerifier(secret string) (Verifier, error) {
	if text, marked := strings.CutPrefix(secret, public); marked {
		key, err := publicKey(text)
		return Verifier{public: key}, err
	}
	if strings.HasPrefix(secret, private) {
		return Verifier{}, errors.New("this is the private half of a key pair (whsk_), which only the sender may have: give the public half (whpk_)")
	}
	key, err := sharedKey(secret)
	return Verifier{shared: key}, err
}

// Verify checks a request against its three headers and returns its id. One signature of one
// verifier is enough. The time of the request may be off from now by at most the tolerance, either
// way. The error is ErrHeaders, ErrTime or ErrForged. Comparison takes the same time however much
// of a signature is right.
func Verify(h http.Header, body []byte, now time.Time, tolerance time.Duration, verifiers ...Verifier) (id string, err error) {
	id, seconds := single(h, HeaderID), single(h, HeaderTimestamp)
	signatures := single(h, HeaderSignature)
	at, err := strconv.ParseInt(seconds, 10, 64)
	if id == "" || signatures == "" || err != nil {
		return "", ErrHeaders
	}
	if off := now.Sub(time.Unix(at, 0)); off > tolerance || off < -tolerance {
		return "", ErrTime
	}
	content := signed(id, seconds, body)
	for i, one := range strings.Fields(signatures) {
		if i == maxSignatures {
			break
		}
		version, text, _ := strings.Cut(one, ",")
		signature, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue // of a version that we do not know, or of another key
		}
		for j := range verifiers {
			if verifiers[j].accepts(version, signature, content) {
				return id, nil
			}
		}
	}
	return "", ErrForged
}

// single returns the value of a header that must occur once: of two, another reader could believe
// the other one.
func single(h http.Header, name string) string {
	if values := h.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

func (v Verifier) accepts(version string, signature, content []byte) bool {
	switch {
	case version == v1 && v.shared != nil:
		return hmac.Equal(signature, mac(v.shared, content))
	case version == v1a && v.public != nil:
		return ed25519.Verify(v.public, content, signature)
	}
	return false
}
