package admin

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const durationHint = "write a number with a unit, such as 30s, 5m, 24h or 7d"

// parseDuration reads Go's form of a duration, with d for 24 hours and w for
// 7 days besides, as the configuration does: 1w2d, 1.5d, 90s. There are no
// negative ones here. The problem goes on after the value.
func parseDuration(s string) (d time.Duration, problem string) {
	if s == "" {
		return 0, "is empty; " + durationHint
	}
	for rest := s; rest != ""; {
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		switch {
		case n == 0:
			return 0, "is not a duration; " + durationHint
		case n < 0:
			return 0, "has no unit; " + durationHint
		}
		end := strings.IndexAny(rest[n:], ".0123456789")
		if end < 0 {
			end = len(rest) - n
		}
		part, problem := durationPart(rest[:n], rest[n:n+end])
		if problem != "" {
			return 0, problem
		}
		if d > math.MaxInt64-part {
			return 0, "is longer than 292 years"
		}
		d, rest = d+part, rest[n+end:]
	}
	return d, ""
}

func durationPart(number, unit string) (time.Duration, string) {
	if strings.Count(number, ".") > 1 || number == "." {
		return 0, "is not a duration; " + durationHint
	}
	times := time.Duration(1)
	switch unit {
	case "d":
		unit, times = "h", 24
	case "w":
		unit, times = "h", 7*24
	case "ns", "us", "µs", "μs", "ms", "s", "m", "h":
	default:
		return 0, fmt.Sprintf("has the unknown unit %q; the units are ns, us, ms, s, m, h, d (24h) and w (7d)", clip(unit))
	}
	d, err := time.ParseDuration(number + unit)
	if err != nil || d > math.MaxInt64/times { // the number is well-formed: only its size can be wrong
		return 0, "is longer than 292 years"
	}
	return d * times, ""
}

// formatDuration writes d in the shortest form that parseDuration reads back:
// 7d, 24h, 5m, 1h30m.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// inWords rounds a wait to what a person wants to read.
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
