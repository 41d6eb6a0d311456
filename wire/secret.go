package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
)

// MinSecretLen is the fewest bytes that a shared secret may have.
const MinSecretLen = 16

// Secret is a shared key and its id. It never prints its bytes. It may be
// used concurrently, and must not be copied.
type Secret struct {
	id   string
	macs sync.Pool // of *mac, keyed and ready
}

// mac is the working memory of one signature.
type mac struct {
	hash hash.Hash
	in   []byte
	sum  [sha256.Size]byte
}

// NewSecret makes a secret of at least MinSecretLen random bytes.
func NewSecret(key []byte) (*Secret, error) {
	if len(key) < MinSecretLen {
		return nil, fmt.Errorf("make secret: it has %d bytes; give at least %d random ones", len(key), MinSecretLen)
	}
	key = append([]byte(nil), key...)
	id := sha256.Sum256(append([]byte("holdfast-key-id"), key...))
	s := &Secret{id: hex.EncodeToString(id[:4])}
	s.macs.New = func() any {
		h := hmac.New(sha256.New, key)
		h.Reset() // keeps the state after the key; saves two blocks each time
		return &mac{hash: h, in: make([]byte, 0, 1024)}
	}
	return s, nil
}

// ParseSecret reads a secret in standard base64, the form in configurations (OI-09). The error does
// not quote the text.
func ParseSecret(text string) (*Secret, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("parse secret: not standard base64 with padding")
	}
	return NewSecret(key)
}

// ID returns the name of the secret: the first 8 hex digits of SHA-256("holdfast-key-id" + secret).
func (s *Secret) ID() string { return s.id }

func (s *Secret) String() string { return "secret " + s.id }

// GoString keeps %#v from printing the key.
func (s *Secret) GoString() string { return s.String() }

func (m *mac) compute() []byte {
	m.hash.Reset()
	m.hash.Write(m.in)
	return m.hash.Sum(m.sum[:0])
}
