// Package standardwebhooks signs requests as Standard Webhooks 1.0 says
// (https://www.standardwebhooks.com), for everything that posts to receivers
// of others: HMAC-SHA256 over id, time and body, so that a receiver can tell
// who sent it, that nobody changed it, that it is fresh, and whether it has
// come before.
package standardwebhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
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

// MinKey is the least number of bytes that a key may have.
const MinKey = 24

// prefix marks a secret that is written in base64.
const prefix = "whsec_"

// Key returns the key that a secret stands for: base64, with "whsec_" before it
// or not, as each library of the standard reads it; what is no base64, or too little,
// stands for its own bytes. No error holds anything of the secret.
func Key(secret string) ([]byte, error) {
	text, marked := strings.CutPrefix(secret, prefix)
	key, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil && marked:
		return nil, errors.New("what follows whsec_ is not base64")
	case !marked && (err != nil || len(key) < MinKey):
		key = []byte(secret)
	}
	if len(key) < MinKey {
		return nil, fmt.Errorf("the key has %d bytes, it must have at least %d", len(key), MinKey)
	}
	return key, nil
}

// Sign sets the three headers. The id is the same in each attempt, the time is
// of this one. There is one signature per key: while a secret is being
// replaced, a receiver finds one that it can check.
func Sign(h http.Header, id string, at time.Time, body []byte, keys ...[]byte) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + seconds + ".")) // a hash takes everything
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, seconds)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}
