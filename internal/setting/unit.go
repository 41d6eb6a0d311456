package setting

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/internal/span"
)

// Sizes that count in powers of two.
const (
	Kibibyte = 1 << 10
	Mebibyte = 1 << 20

	sizeFix = "write a whole number with a unit, such as 512KiB or 1MiB"
)

// Problem says what is wrong with a value, without its place.
type Problem struct {
	What string // completes a sentence that begins with the value: "has no unit"
	Fix  string
}

// ParseDuration reads Go's form of a duration, and also d for 24 hours and w for 7 days: 1w2d, 1.5d, 90s.
func ParseDuration(s string) (time.Duration, error) {
	d, p := parseDuration(s)
	if p != nil {
		return 0, fmt.Errorf("parse duration %q: %s; %s", clip(s), p.What, p.Fix)
	}
	return d, nil
}

func parseDuration(s string) (time.Duration, *Problem) {
	d, p := span.Parse(s)
	if p != nil {
		return 0, &Problem{p.What, p.Fix}
	}
	return d, nil
}

// FormatDuration writes d in the shortest form that ParseDuration reads back: 7d, 24h, 5m, 1h30m.
func FormatDuration(d time.Duration) string { return span.Format(d) }

type unit struct {
	name  string
	bytes int64
}

// sizeUnits lists the units of a size, the largest first.
func sizeUnits() []unit {
	return []unit{
		{"PiB", 1 << 50}, {"PB", 1e15}, {"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", Mebibyte}, {"MB", 1e6}, {"KiB", Kibibyte}, {"KB", 1e3}, {"B", 1},
	}
}

// ParseSize reads a number of bytes with its unit: B, KB, KiB, MB, MiB and so on up to PB and PiB.
func ParseSize(s string) (int64, error) {
	n, p := parseSize(s)
	if p != nil {
		return 0, fmt.Errorf("parse size %q: %s; %s", clip(s), p.What, p.Fix)
	}
	return n, nil
}

func parseSize(s string) (int64, *Problem) {
	i := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	switch {
	case s != "" && i < 0:
		return 0, &Problem{"has no unit", sizeFix}
	case i <= 0 || s[i] == '.':
		return 0, &Problem{"is not a size", sizeFix}
	}
	number, name := s[:i], strings.TrimLeft(s[i:], " ")
	for _, u := range sizeUnits() {
		if u.name != name {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > math.MaxInt64/u.bytes {
			return 0, &Problem{"is larger than any size", sizeFix}
		}
		return n * u.bytes, nil
	}
	return 0, &Problem{fmt.Sprintf("has the unknown unit %q", clip(name)), "the units are B, KB (1000 bytes), KiB (1024 bytes), MB, MiB, GB, GiB, TB, TiB, PB and PiB"}
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
