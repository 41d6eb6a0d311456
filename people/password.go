package people

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// The parameters of new hashes: OWASP's for argon2id. They are part of a hash, so that they can grow.
const (
	memory  = 19 << 10 // KiB
	passes  = 2
	lanes   = 1
	saltLen = 16
	keyLen  = 32
)

// Bounds of a hash that was read: one that was tampered with must not cost the machine's memory.
const (
	mostMemory = 1 << 20 // KiB
	mostPasses = 64
)

// hashing bounds how many hashes are made at once: each takes its memory.
var hashing = make(chan struct{}, 4) //nolint:gochecknoglobals // of the process: its memory is

// derive makes a key, once there is room for it.
func derive(ctx context.Context, password string, salt []byte, m, t uint32, p uint8, n uint32) ([]byte, error) {
	select {
	case hashing <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the hash of a password: %w", ctx.Err())
	}
	defer func() { <-hashing }()
	return argon2.IDKey([]byte(password), salt, t, m, p, n), nil
}

// HashPassword returns the argon2id hash of a password in the form of the reference implementation:
// $argon2id$v=19$m=…,t=…,p=…$salt$hash.
func HashPassword(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltLen)
	_, _ = rand.Read(salt) // never fails
	key, err := derive(ctx, password, salt, memory, passes, lanes, keyLen)
	if err != nil {
		return "", err
	}
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("%s%s$%s", current(), b64.EncodeToString(salt), b64.EncodeToString(key)), nil
}

func current() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$", argon2.Version, memory, passes, lanes)
}

// VerifyPassword reports whether a hash is that of a password, and whether it was made with other parameters
// than HashPassword has now. A text that is no hash takes the same time, and fits no password.
func VerifyPassword(ctx context.Context, hash, password string) (fits, old bool, err error) {
	h, readable := parse(hash)
	key, err := derive(ctx, password, h.salt, h.m, h.t, h.p, uint32(len(h.key)))
	if err != nil || !readable {
		return false, false, err
	}
	return subtle.ConstantTimeCompare(key, h.key) == 1, !strings.HasPrefix(hash, current()), nil
}

type parsed struct {
	m, t      uint32
	p         uint8
	salt, key []byte
}

// parse reads a hash. In place of one that is none it returns one that costs as much.
func parse(hash string) (h parsed, ok bool) {
	stand := parsed{memory, passes, lanes, make([]byte, saltLen), make([]byte, keyLen)}
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return stand, false
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.m, &h.t, &h.p); n != 3 || err != nil ||
		h.m < 8 || h.m > mostMemory || h.t < 1 || h.t > mostPasses || h.p < 1 {
		return stand, false
	}
	var err, also error
	h.salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	h.key, also = base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || also != nil || len(h.salt) < 8 || len(h.key) < 16 || len(h.key) > 64 {
		return stand, false
	}
	return h, true
}
