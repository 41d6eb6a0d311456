package setting

import (
	"bytes"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"log/slog"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// Hidden is shown in the place of a secret.
const Hidden = secrets.Mark

const (
	minSecret  = 16 // bytes: below it a signature can be guessed
	makeSecret = "make one with: openssl rand -base64 32"
)

// Secret is a key that signs or verifies messages. Printed, logged or marshalled, it shows as "[secret]".
// Only Bytes returns the key.
type Secret struct {
	// A function, because fmt prints an unexported field of somebody's struct without calling its methods,
	// and follows pointers for a wrong verb.
	key func() []byte
	env string // the variable, or
	at  string // the file; where the secret was read from
}

// NewSecret returns a secret with a copy of key.
func NewSecret(key []byte) Secret {
	key = bytes.Clone(key)
	return Secret{key: func() []byte { return bytes.Clone(key) }}
}

// Bytes returns a copy of the key, nil for the zero Secret.
func (s Secret) Bytes() []byte {
	if s.key == nil {
		return nil
	}
	return s.key()
}

// File returns the file that the key was read from. Empty: it came from a variable, or the program made it.
func (s Secret) File() string { return s.at }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.key == nil }

// Equal compares the keys in constant time. It does not compare where they come from.
func (s Secret) Equal(other Secret) bool {
	return s.IsZero() == other.IsZero() && subtle.ConstantTimeCompare(s.Bytes(), other.Bytes()) == 1
}

// String returns "[secret]".
func (Secret) String() string { return Hidden }

// GoString returns "[secret]".
func (Secret) GoString() string { return Hidden }

// Format writes "[secret]" for every verb, even those that would not call String.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Hidden)) }

// MarshalText returns "[secret]".
func (Secret) MarshalText() ([]byte, error) { return []byte(Hidden), nil }

// LogValue returns "[secret]".
func (Secret) LogValue() slog.Value { return slog.StringValue(Hidden) }

var (
	_ fmt.Formatter  = Secret{}
	_ slog.LogValuer = Secret{}
)

// parseSecret decodes a secret as it stands in a variable or a file. Its problem never holds a part of the secret.
func parseSecret(text string) (Secret, *Problem) {
	if text == "" {
		return Secret{}, &Problem{What: "the secret is empty", Fix: makeSecret}
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Secret{}, &Problem{What: "the secret is not base64 (A–Z, a–z, 0–9, + and /, padded with =)", Fix: makeSecret}
	}
	if p := shortSecret(key); p != nil {
		return Secret{}, p
	}
	return NewSecret(key), nil
}

func shortSecret(key []byte) *Problem {
	if len(key) >= minSecret {
		return nil
	}
	return &Problem{
		What: fmt.Sprintf("the secret has %d bytes, which is too short to be safe", len(key)),
		Fix:  fmt.Sprintf("use at least %d bytes; %s", minSecret, makeSecret),
	}
}

// LooksSecret reports whether a text that should be a name may be a secret in the wrong place, so that nobody
// prints it.
func LooksSecret(s string) bool {
	for _, enc := range []*base64.Encoding{
		base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding,
	} {
		if key, err := enc.DecodeString(s); err == nil && len(key) >= minSecret {
			return true
		}
	}
	return false
}
