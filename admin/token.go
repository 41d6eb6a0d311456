package admin

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
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

// checkToken reports what is wrong with a new token's name and role.
func checkToken(t api.NewToken) []api.Fault {
	var faults []api.Fault
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@"
	bad := func(r rune) bool { return !strings.ContainsRune(allowed, r) }
	switch {
	case t.Name == "":
		faults = append(faults, api.Fault{Field: "name", Problem: "is missing; name who or what will use the token"})
	case len(t.Name) > 64 || strings.ContainsFunc(t.Name, bad):
		faults = append(faults, api.Fault{Field: "name", Value: api.Clip(t.Name), Problem: "must be 1 to 64 letters, digits, dots, hyphens, underscores or @"})
	case t.Name == api.Local || t.Name == "." || t.Name == "..":
		faults = append(faults, api.Fault{Field: "name", Value: t.Name, Problem: "is reserved; take another name"})
	}
	if t.Role.Rank() == 0 {
		faults = append(faults, api.Fault{Field: "role", Value: api.Clip(string(t.Role)), Problem: "must be read, operate or admin"})
	}
	return faults
}
