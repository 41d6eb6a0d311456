// Package standardwebhooks signs requests as in Standard Webhooks 1.0
// (https://www.standardwebhooks.com), for all that we post to foreign receivers. The signature is
// HMAC-SHA256 over id, time and body. A receiver can check who sent the request, that it was not
// changed, that it is fresh, and whether it has come before.
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

// MinKey is the shortest key, in bytes.
const MinKey = 24

// prefix marks a secret that is written in base64.
const prefix = "whsec_"

// Key returns the key for a secret: base64, with or without "whsec_" before it, as each library of
// the standard reads it. A secret that is not base64, or is too short as base64, is used as plain
// bytes. Errors quote nothing of the secret.
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

// Sign sets the three headers. The id is the same in each attempt; the time is that of the attempt.
// There is one signature per key: while a secret is being replaced, a receiver finds one that it
// can check.
func Sign(h http.Header, id string, at time.Time, body []byte, keys ...[]byte) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + seconds + ".")) // a hash never fails
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, seconds)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}
