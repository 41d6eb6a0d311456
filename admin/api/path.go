package api

import (
	"net/url"
	"strings"
)

// Segment escapes an id for a path; a browser or proxy would resolve dots.
func Segment(id string) string {
	if id == "." || id == ".." {
		return strings.ReplaceAll(id, ".", "%2E")
	}
	return url.PathEscape(id)
}
