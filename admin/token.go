package admin

import (
	"context"
	"crypto/rand"
	"hash/crc32"
	"math/big"
	"strings"
	"time"
)

// TokenStore keeps tokens as hashes of their secrets. Its methods are atomic
// and may be called concurrently. It speaks in plain types, so that a store
// need not import this package.
type TokenStore interface {
	// CreateToken keeps a token; a name that is taken is
	// holdfast.ErrConflict.
	CreateToken(ctx context.Context, name, role string, hash [32]byte) error
	// DeleteToken ends a token; holdfast.ErrNotFound if there is none.
	DeleteToken(ctx context.Context, name string) error
	// FindToken returns the token with this hash, or holdfast.ErrNotFound. It
	// is called for every request, and may note the time.
	FindToken(ctx context.Context, hash [32]byte) (name, role string, err error)
	// EachToken calls yield for each token, by name. lastUsed is zero if the
	// token was never used, or nobody noted it.
	EachToken(ctx context.Context, yield func(name, role string, created, lastUsed time.Time)) error
}

// A secret is hf_, 256 random bits in 43 letters and digits, and 6 more that
// check them: a mistyped one is refused without a look at the store, and a
// scanner of source code can tell a real one.
const (
	secretPrefix = "hf_"
	randomLen    = 43
	checkLen     = 6
)

func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program first
	text := base62(new(big.Int).SetBytes(b[:]), randomLen)
	return secretPrefix + text + checksum(text)
}

func checksum(text string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(text)))), checkLen)
}

func base62(n *big.Int, width int) string {
	s := n.Text(62)
	return strings.Repeat("0", width-len(s)) + s
}

func wellFormed(secret string) bool {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	return ok && len(text) == randomLen+checkLen && checksum(text[:randomLen]) == text[randomLen:]
}

// checkToken reports what is wrong with a new token's name and role.
func checkToken(t NewToken) []Fault {
	var faults []Fault
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@"
	bad := func(r rune) bool { return !strings.ContainsRune(allowed, r) }
	switch {
	case t.Name == "":
		faults = append(faults, Fault{"name", "", "is missing; name who or what will use the token"})
	case len(t.Name) > 64 || strings.ContainsFunc(t.Name, bad):
		faults = append(faults, Fault{"name", clip(t.Name), "must be 1 to 64 letters, digits, dots, hyphens, underscores or @"})
	case t.Name == Local || t.Name == "." || t.Name == "..":
		faults = append(faults, Fault{"name", t.Name, "is reserved; take another name"})
	}
	if t.Role.rank() == 0 {
		faults = append(faults, Fault{"role", clip(string(t.Role)), "must be read, operate or admin"})
	}
	return faults
}
