package admin

import (
	"strings"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// checkToken reports the faults of a new token's name and role.
func checkToken(t *api.NewToken) []api.Fault {
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
