package admin

import (
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/span"
)

// parseDuration reads a duration as the configuration does: 1w2d, 1.5d, 90s. It refuses negative durations
// and durations without a unit. problem completes a sentence that begins with the value.
func parseDuration(s string) (d time.Duration, problem string) {
	switch d, p := span.Parse(s); {
	case s == "":
		return 0, "is empty; write a number with a unit, such as 30s, 5m, 24h or 7d"
	case strings.HasPrefix(s, "-"):
		return 0, "has a minus sign; write it without one"
	case p != nil:
		return 0, p.What + "; " + p.Fix
	case s == "0":
		return 0, "has no unit; write 0s"
	default:
		return d, ""
	}
}

func formatDuration(d time.Duration) string { return span.Format(d) }

// inWords formats a wait, rounded, for people.
func inWords(d time.Duration) string {
	switch {
	case d < time.Second:
		return "less than a second"
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return formatDuration(d.Round(time.Second))
	}
	return formatDuration(d.Round(time.Minute))
}
