package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// KeySize is the length of a key, in bytes.
const KeySize = 32

// version begins each sealed value.
const version = "hf1"

// Errors of a Ring. A *MissingKeyError is ErrKey, too.
var (
	// ErrNoKey means that nothing can be sealed, because the node has no key.
	ErrNoKey = errors.New("this node has no key for secrets: make one with holdfast keys create FILE, and set secrets: {key: {file: FILE}} in its configuration")
	// ErrKey means that the key of a sealed value is not on the ring.
	ErrKey = errors.New("the key is not on the ring")
	// ErrPlace means that a rotation was to go on at a place that no page has returned.
	ErrPlace = errors.New("there is no such place: begin anew")
	// ErrBroken means that a sealed value was changed, or belongs to another place.
	ErrBroken = errors.New("the sealed secret does not open here: it was changed, or it belongs to another place; give the secret again")
)

// MissingKeyError names the key that a sealed value needs.
type MissingKeyError struct{ ID string }

// Error implements error.
func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("the secret is sealed with key %s, which this node does not have: name its file in the configuration, as secrets.key or in secrets.former", e.ID)
}

// Is makes the error ErrKey.
func (e *MissingKeyError) Is(target error) bool { return target == ErrKey }

// Context is the place of a value. It is authenticated, not stored.
type Context struct {
	Table  string // such as "subscription"
	Row    string // id of the row
	Column string // what the value is for
}

// Ring seals with its newest key and opens with each of its keys. It does not change; concurrent use
// is safe. The zero value and nil have no key.
type Ring struct {
	ids  []string // newest first
	keys map[string]cipher.AEAD
}

// New returns the ring of the newest key and of former ones. A nil key is none: former keys then
// still open, and nothing is sealed. Each key has KeySize bytes.
func New(key []byte, former ...[]byte) (*Ring, error) {
	r := &Ring{keys: map[string]cipher.AEAD{}}
	for i, k := range append([][]byte{key}, former...) {
		if i == 0 && k == nil {
			r.ids = append(r.ids, "")
			continue
		}
		if len(k) != KeySize {
			return nil, fmt.Errorf("the key has %d bytes, it must have %d", len(k), KeySize)
		}
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, fmt.Errorf("use key: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("use key: %w", err)
		}
		id := ID(k)
		if r.keys[id] == nil {
			r.ids = append(r.ids, id)
			r.keys[id] = aead
		}
	}
	return r, nil
}

// ID returns the name of a key: 12 hexadecimal digits of a hash. It tells nothing of the key.
func ID(key []byte) string {
	sum := sha256.Sum256(append([]byte("holdfast key id\x00"), key...))
	return hex.EncodeToString(sum[:6])
}

// Newest returns the id of the key that seals, "" if there is none.
func (r *Ring) Newest() string {
	if r == nil || len(r.ids) == 0 {
		return ""
	}
	return r.ids[0]
}

// Former returns the ids of the keys that only open.
func (r *Ring) Former() []string {
	if r == nil || len(r.ids) == 0 {
		return nil
	}
	return r.ids[1:]
}

// Seal returns the sealed form of a secret for its place. The error is ErrNoKey.
func (r *Ring) Seal(at Context, plain []byte) (string, error) {
	id := r.Newest()
	if id == "" {
		return "", ErrNoKey
	}
	data := r.keys[id].Seal(nil, nil, plain, at.bound(id)) //nolint:gosec // it takes no nonce: it makes one
	return version + "." + id + "." + base64.RawURLEncoding.EncodeToString(data), nil
}

// Open returns the secret in a sealed value. The error is a *MissingKeyError or ErrBroken.
func (r *Ring) Open(at Context, sealed string) ([]byte, error) {
	id, data, err := split(sealed)
	if err != nil {
		return nil, err
	}
	var aead cipher.AEAD
	if r != nil {
		aead = r.keys[id]
	}
	if aead == nil {
		return nil, &MissingKeyError{ID: id}
	}
	plain, err := aead.Open(nil, nil, data, at.bound(id))
	if err != nil {
		return nil, ErrBroken
	}
	return plain, nil
}

// IsSealed reports whether a text looks like a sealed value.
func IsSealed(text string) bool { return strings.HasPrefix(text, version+".") }

// KeyOf returns the id of the key that sealed a value, "" if the text is not a sealed value.
func KeyOf(sealed string) string {
	id, _, err := split(sealed)
	if err != nil {
		return ""
	}
	return id
}

// Mark returns what may be shown of a sealed value: the id of its key and a short hash. It tells two
// values apart, and opens nothing.
func Mark(sealed string) string {
	sum := sha256.Sum256([]byte(sealed))
	return KeyOf(sealed) + "." + hex.EncodeToString(sum[:8])
}

func split(sealed string) (id string, data []byte, err error) {
	head, rest, _ := strings.Cut(sealed, ".")
	id, text, _ := strings.Cut(rest, ".")
	data, err = base64.RawURLEncoding.DecodeString(text)
	if head != version || len(id) != 12 || err != nil || base64.RawURLEncoding.EncodeToString(data) != text {
		return "", nil, ErrBroken
	}
	return id, data, nil
}

// bound returns what is authenticated beside the secret. Lengths keep the parts apart.
func (c Context) bound(id string) []byte {
	b := []byte(version + "." + id)
	for _, part := range []string{c.Table, c.Row, c.Column} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}
