// Package span reads and writes durations as people type them in configurations and requests: in
// Go's form, plus days and weeks.
package span

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	day = 24 * time.Hour

	usual = "write a number with a unit, such as 500ms, 30s, 5m, 24h or 7d"
)

// Problem describes a fault in a text. What continues a sentence that begins with the value ("has
// no unit"); Fix says what to write instead.
type Problem struct{ What, Fix string }

// Parse reads Go's form of a duration, plus d for 24 hours and w for 7 days: 1w2d, 1.5d, 90s.
func Parse(s string) (time.Duration, *Problem) {
	if s == "0" {
		return 0, nil
	}
	rest, total := strings.TrimPrefix(s, "-"), time.Duration(0)
	if rest == "" {
		return 0, &Problem{"is not a duration", usual}
	}
	for rest != "" {
		number, unit, next := cut(rest)
		part, p := one(number, unit)
		if p != nil {
			return 0, p
		}
		if part > math.MaxInt64-total {
			return 0, tooLong()
		}
		total, rest = total+part, next
	}
	if strings.HasPrefix(s, "-") {
		return -total, nil
	}
	return total, nil
}

// cut splits "1w2d" into "1", "w" and "2d".
func cut(s string) (number, unit, rest string) {
	digit := func(r rune) bool { return r >= '0' && r <= '9' || r == '.' }
	i := strings.IndexFunc(s, func(r rune) bool { return !digit(r) })
	if i < 0 {
		return s, "", ""
	}
	number, s = s[:i], s[i:]
	if i = strings.IndexFunc(s, digit); i < 0 {
		return number, s, ""
	}
	return number, s[:i], s[i:]
}

func one(number, unit string) (time.Duration, *Problem) {
	if number == "" || strings.Count(number, ".") > 1 || number == "." {
		return 0, &Problem{"is not a duration", usual}
	}
	times := time.Duration(1)
	switch unit {
	case "":
		return 0, &Problem{"has no unit", usual}
	case "d":
		unit, times = "h", 24
	case "w":
		unit, times = "h", 7*24
	case "ns", "us", "µs", "μs", "ms", "s", "m", "h":
	default:
		if len(unit) > 20 {
			unit = strings.ToValidUTF8(unit[:20], "") + "…"
		}
		return 0, &Problem{fmt.Sprintf("has the unknown unit %q", unit), "the units are ns, us, ms, s, m, h, d (24h) and w (7d)"}
	}
	part, err := time.ParseDuration(number + unit)
	if err != nil || part > math.MaxInt64/times { // the number is well-formed, so it can only be too large
		return 0, tooLong()
	}
	return part * times, nil
}

func tooLong() *Problem {
	return &Problem{"is longer than 292 years", "write a shorter time, such as 3650d"}
}

// Format writes d in the shortest form that Parse reads back: 7d, 24h, 5m,
// 1h30m.
func Format(d time.Duration) string {
	if d >= 2*day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
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
