package setting

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Scalar returns the text of a value that has one of the tags.
func (l *Loader) Scalar(path string, n *yaml.Node, want, example string, tags ...string) (string, bool) {
	n, ok := l.Value(path, n)
	if !ok {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.Tag) {
		l.wrongType(path, n, want, "write "+example)
		return "", false
	}
	return n.Value, true
}

// Text reads a text. A date counts as text too: only YAML sees a date in it.
func Text[T ~string](l *Loader, to *T, example string) Decode {
	return func(path string, n *yaml.Node) {
		if s, ok := l.Scalar(path, n, "text", "text, such as "+example, "!!str", "!!timestamp"); ok {
			*to = T(s)
		}
	}
}

// path reads a path that is relative to the folder of the file.
func (l *Loader) path(to *string, example string) Decode {
	return func(path string, n *yaml.Node) {
		var s string
		Text(l, &s, example)(path, n)
		if !l.Bad[path] {
			*to = l.Absolute(path, l.dir, s)
		}
	}
}

// Boolean reads true or false.
func Boolean(l *Loader, to *bool) Decode {
	return func(path string, n *yaml.Node) {
		if s, ok := l.Scalar(path, n, "true or false", "true or false", "!!bool"); ok {
			*to = strings.EqualFold(s, "true")
		}
	}
}

// Integer reads a whole number.
func Integer(l *Loader, to *int, example string) Decode {
	return func(path string, n *yaml.Node) {
		s, ok := l.Scalar(path, n, "a whole number", "a whole number, such as "+example, "!!int")
		if !ok {
			return
		}
		i, err := strconv.Atoi(s)
		if err != nil {
			l.Unreadable(path, s, Problem{"is not a plain decimal number", "write a whole number, such as " + example})
			return
		}
		*to = i
	}
}

// Number reads a number.
func Number(l *Loader, to *float64, example string) Decode {
	return func(path string, n *yaml.Node) {
		s, ok := l.Scalar(path, n, "a number", "a number, such as "+example, "!!int", "!!float")
		if !ok {
			return
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			l.Unreadable(path, s, Problem{"is not a plain decimal number", "write a number, such as " + example})
			return
		}
		*to = f
	}
}

func (l *Loader) size(to *int64) Decode {
	return func(path string, n *yaml.Node) {
		s, ok := l.Scalar(path, n, "a size", "a size with a unit, such as 512KiB or 1MiB", "!!str", "!!int", "!!float")
		if !ok {
			return
		}
		bytes, p := parseSize(s)
		if p != nil {
			l.Unreadable(path, s, *p)
			return
		}
		*to = bytes
	}
}

// Duration reads a time of 0s or more.
func (l *Loader) Duration(to *time.Duration) Decode {
	return l.durationOr(to, "")
}

// durationOr reads a duration, or the word that means Never.
func (l *Loader) durationOr(to *time.Duration, never string) Decode {
	return func(path string, n *yaml.Node) {
		s, ok := l.Scalar(path, n, "a duration", "a duration with a unit, such as 30s, 24h or 7d", "!!str", "!!int", "!!float")
		if !ok {
			return
		}
		if s == never && never != "" {
			*to = Never
			return
		}
		d, p := parseDuration(s)
		if p == nil && d < 0 {
			p = &Problem{"is negative", "write a time of 0s or more"}
		}
		if p != nil {
			if never != "" {
				p.Fix += ", or " + never
			}
			l.Unreadable(path, s, *p)
			return
		}
		*to = d
	}
}

// Never in a TTL or a retention means that no time ends it; in Backup.Every, that no backup is made. The
// file says "none" for a TTL, "forever" for a retention and "off" for backups.
const Never time.Duration = -1

// Bounds of many settings.
const (
	Day     = 24 * time.Hour
	MaxTime = 3650 * Day // the longest that a setting accepts
	maxName = 128
)
