package audit

import (
	"strings"

	"github.com/holdfast-mq/holdfast/rows"
)

// SiteOf returns the name under which central finds a record of a log that names this site itself. It is that of
// the credential with which the log came: a site may call itself something else.
func SiteOf(log *rows.AuditLog, named string) string {
	if log.Site != "" && named == OriginSite(log.Origin) {
		return log.Site
	}
	return named
}

// OriginSite returns the site in the name of a log, or nothing if it is not the name of one.
func OriginSite(origin string) string {
	parts := strings.Split(origin, "/")
	if len(parts) != 4 || Origin(parts[1], parts[2], parts[3]) != origin {
		return ""
	}
	return parts[1]
}
