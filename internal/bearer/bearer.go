// Package bearer makes and checks secrets that are shown once and kept as hashes: API tokens,
// enrolment tokens, credentials of sites. Possession of the text grants the right, so it has 256
// random bits and is never kept in a store.
package bearer

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"net/http"
	"strings"
)

// A secret is its prefix, 256 random bits in 43 letters and digits, and 6 more as a checksum. So a
// mistyped secret is refused without a query, and a scanner of source code can recognize a real
// one.
const (
	randomLen = 43
	checkLen  = 6
)

// New makes a secret with this prefix.
func New(prefix string) string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	text := base62(new(big.Int).SetBytes(b[:]), randomLen)
	return prefix + text + checksum(text)
}

func checksum(text string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(text)))), checkLen)
}

func base62(n *big.Int, width int) string {
	s := n.Text(62)
	return strings.Repeat("0", width-len(s)) + s
}

// WellFormed reports whether New can have made this secret.
func WellFormed(prefix, secret string) bool {
	text, ok := strings.CutPrefix(secret, prefix)
	return ok && len(text) == randomLen+checkLen && checksum(text[:randomLen]) == text[randomLen:]
}

// Hash returns the hash that a store keeps.
func Hash(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// Of returns the secret in a request, or an empty string.
func Of(r *http.Request) string {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// Set puts the secret into a request.
func Set(h http.Header, secret string) { h.Set("Authorization", "Bearer "+secret) }
