package api

import (
	"net/url"
	"strings"
)

// Segment escapes an id for a path. Browsers and proxies would resolve plain dots.
func Segment(id string) string {
	if id == "." || id == ".." {
		return strings.ReplaceAll(id, ".", "%2E")
	}
	return url.PathEscape(id)
}
