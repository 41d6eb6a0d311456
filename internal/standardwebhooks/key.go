package standardwebhooks

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// MinKey is the shortest shared key, in bytes.
const MinKey = 24

// The marks say what a secret is. Base64 follows them.
const (
	shared  = "whsec_" // a key that both sides know
	private = "whsk_"  // the private half of an Ed25519 pair, and the public half after it
	public  = "whpk_"  // the public half
)

// The versions of signatures.
const (
	v1  = "v1"
	v1a = "v1a"
)

// Signer signs with one secret. The zero value signs with an empty key: take one from NewSigner.
// Concurrent use is safe.
type Signer struct {
	shared  []byte
	private ed25519.PrivateKey // nil: shared signs
}

// NewSecret makes a secret of the kind of another one: an Ed25519 key, or else a shared secret.
func NewSecret(like string) string {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed) // never fails
	if strings.HasPrefix(like, private) {
		return private + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(seed))
	}
	return shared + base64.StdEncoding.EncodeToString(seed)
}

// NewSigner returns the signer for a secret. "whsk_" marks an Ed25519 key: base64 of the seed and
// the public key (64 bytes), or of the seed alone (32). All else is a shared secret: base64, with
// or without "whsec_" before it, as each library of the standard reads it. A shared secret that is
// not base64, or is too short as base64, is used as plain bytes. Errors quote nothing of the secret.
func NewSigner(secret string) (Signer, error) {
	if text, marked := strings.CutPrefix(secret, private); marked {
		key, err := privateKey(text)
		return Signer{private: key}, err
	}
	if strings.HasPrefix(secret, public) {
		return Signer{}, errors.New("this is the public half of a key pair (whpk_), it can only verify: give the private half (whsk_)")
	}
	key, err := sharedKey(secret)
	return Signer{shared: key}, err
}

// Public returns the key that receivers verify with, as "whpk_" and base64. It is empty for a
// shared secret.
func (s Signer) Public() string {
	if s.private == nil {
		return ""
	}
	return public + base64.StdEncoding.EncodeToString(s.private[ed25519.SeedSize:])
}

func (s Signer) sign(content []byte) string {
	if s.private != nil {
		return v1a + "," + base64.StdEncoding.EncodeToString(ed25519.Sign(s.private, content))
	}
	return v1 + "," + base64.StdEncoding.EncodeToString(mac(s.shared, content))
}

func mac(key, content []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(content) // a hash never fails
	return h.Sum(nil)
}

func sharedKey(secret string) ([]byte, error) {
	text, marked := strings.CutPrefix(secret, shared)
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

func privateKey(text string) (ed25519.PrivateKey, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("what follows whsk_ is not base64")
	}
	if len(raw) != ed25519.SeedSize && len(raw) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("the private key has %d bytes, it must have 64 (seed and public key) or 32 (seed)", len(raw))
	}
	key := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
	if len(raw) == ed25519.PrivateKeySize && !bytes.Equal(raw, key) {
		return nil, errors.New("the two halves of the key after whsk_ do not belong together")
	}
	return key, nil
}

func publicKey(text string) (ed25519.PublicKey, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("what follows whpk_ is not base64")
	}
	if len(raw) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("the public key has %d bytes, it must have %d", len(raw), ed25519.PublicKeySize)
	}
	return raw, nil
}
