package link

import (
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// CheckName returns an error if name is no valid name of a site. The name is the source of the
// site's messages and appears in URLs.
func CheckName(name string) error {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	bad := func(r rune) bool { return !strings.ContainsRune(allowed, r) }
	var problem string
	switch {
	case name == "":
		problem = "is missing; name the site, such as plant-7"
	case len(name) > 64 || strings.ContainsFunc(name, bad):
		problem = "must be 1 to 64 letters, digits, dots, hyphens or underscores"
	case strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-"):
		problem = "must begin with a letter, a digit or an underscore"
	default:
		return nil
	}
	return &holdfast.FieldError{Field: "name", Value: clip(name), Problem: problem}
}

// clip shortens what a stranger wrote.
func clip(s string) string { return shown.Clip(s, 80) }
