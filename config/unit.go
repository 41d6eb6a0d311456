package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	kibibyte = 1 << 10
	mebibyte = 1 << 20

	durationFix = "write a number with a unit, such as 500ms, 30s, 5m, 24h or 7d"
	sizeFix     = "write a whole number with a unit, such as 512KiB or 1MiB"
)

// problem is what is wrong with a value, apart from where it stands.
type problem struct {
	what string // goes on after the value: "has no unit"
	fix  string
}

// ParseDuration reads Go's form of a duration, with d for 24 hours and w for
// 7 days besides: 1w2d, 1.5d, 90s.
func ParseDuration(s string) (time.Duration, error) {
	d, p := parseDuration(s)
	if p != nil {
		return 0, fmt.Errorf("parse duration %q: %s; %s", clip(s), p.what, p.fix)
	}
	return d, nil
}

func parseDuration(s string) (time.Duration, *problem) {
	if s == "0" {
		return 0, nil
	}
	rest, total := strings.TrimPrefix(s, "-"), time.Duration(0)
	if rest == "" {
		return 0, &problem{"is not a duration", durationFix}
	}
	for rest != "" {
		number, unit, next := cutUnit(rest)
		part, p := durationPart(number, unit)
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

// cutUnit splits "1w2d" into "1", "w" and "2d".
func cutUnit(s string) (number, unit, rest string) {
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

func durationPart(number, unit string) (time.Duration, *problem) {
	if number == "" || strings.Count(number, ".") > 1 || number == "." {
		return 0, &problem{"is not a duration", durationFix}
	}
	times := time.Duration(1)
	switch unit {
	case "":
		return 0, &problem{"has no unit", durationFix}
	case "d":
		unit, times = "h", 24
	case "w":
		unit, times = "h", 7*24
	case "ns", "us", "µs", "μs", "ms", "s", "m", "h":
	default:
		return 0, &problem{fmt.Sprintf("has the unknown unit %q", clip(unit)), "the units are ns, us, ms, s, m, h, d (24h) and w (7d)"}
	}
	part, err := time.ParseDuration(number + unit)
	if err != nil || part > math.MaxInt64/times { // the number is well-formed: only its size is left to be wrong
		return 0, tooLong()
	}
	return part * times, nil
}

func tooLong() *problem {
	return &problem{"is longer than 292 years", "write a shorter time, such as 3650d"}
}

// FormatDuration writes d in the shortest form that ParseDuration reads back:
// 7d, 24h, 5m, 1h30m.
func FormatDuration(d time.Duration) string {
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

type unit struct {
	name  string
	bytes int64
}

// sizeUnits lists the units of a size, the largest first.
func sizeUnits() []unit {
	return []unit{
		{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", mebibyte}, {"MB", 1e6}, {"KiB", kibibyte}, {"KB", 1e3}, {"B", 1},
	}
}

// ParseSize reads a number of bytes with its unit: B, KB, KiB, MB, MiB, GB,
// GiB.
func ParseSize(s string) (int64, error) {
	n, p := parseSize(s)
	if p != nil {
		return 0, fmt.Errorf("parse size %q: %s; %s", clip(s), p.what, p.fix)
	}
	return n, nil
}

func parseSize(s string) (int64, *problem) {
	i := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	switch {
	case s != "" && i < 0:
		return 0, &problem{"has no unit", sizeFix}
	case i <= 0 || s[i] == '.':
		return 0, &problem{"is not a size", sizeFix}
	}
	number, name := s[:i], strings.TrimLeft(s[i:], " ")
	for _, u := range sizeUnits() {
		if u.name != name {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > math.MaxInt64/u.bytes {
			return 0, &problem{"is larger than any size", sizeFix}
		}
		return n * u.bytes, nil
	}
	return 0, &problem{fmt.Sprintf("has the unknown unit %q", clip(name)), "the units are B, KB (1000 bytes), KiB (1024 bytes), MB, MiB, GB and GiB"}
}

// FormatSize writes n with the largest unit that divides it, in a form that
// ParseSize reads back.
func FormatSize(n int64) string {
	for _, u := range sizeUnits() {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
