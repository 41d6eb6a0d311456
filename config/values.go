package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// scalar returns the text of a value that has one of the tags.
func (l *loader) scalar(path string, n *yaml.Node, want, example string, tags ...string) (string, bool) {
	n, ok := l.value(path, n)
	if !ok {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.Tag) {
		l.wrongType(path, n, want, "write "+example)
		return "", false
	}
	return n.Value, true
}

// text reads a text. Dates look like text to everybody but YAML.
func text[T ~string](l *loader, to *T, example string) decode {
	return func(path string, n *yaml.Node) {
		if s, ok := l.scalar(path, n, "text", "text, such as "+example, "!!str", "!!timestamp"); ok {
			*to = T(s)
		}
	}
}

// path reads a path that is relative to the folder of the file.
func (l *loader) path(to *string, example string) decode {
	return func(path string, n *yaml.Node) {
		var s string
		text(l, &s, example)(path, n)
		if !l.bad[path] {
			*to = l.absolute(path, l.dir, s)
		}
	}
}

func (l *loader) boolean(to *bool) decode {
	return func(path string, n *yaml.Node) {
		if s, ok := l.scalar(path, n, "true or false", "true or false", "!!bool"); ok {
			*to = strings.EqualFold(s, "true")
		}
	}
}

func (l *loader) integer(to *int, example string) decode {
	return func(path string, n *yaml.Node) {
		s, ok := l.scalar(path, n, "a whole number", "a whole number, such as "+example, "!!int")
		if !ok {
			return
		}
		i, err := strconv.Atoi(s)
		if err != nil {
			l.unreadable(path, s, problem{"is not a plain decimal number", "write a whole number, such as " + example})
			return
		}
		*to = i
	}
}

func (l *loader) number(to *float64, example string) decode {
	return func(path string, n *yaml.Node) {
		s, ok := l.scalar(path, n, "a number", "a number, such as "+example, "!!int", "!!float")
		if !ok {
			return
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			l.unreadable(path, s, problem{"is not a plain decimal number", "write a number, such as " + example})
			return
		}
		*to = f
	}
}

func (l *loader) size(to *int64) decode {
	return func(path string, n *yaml.Node) {
		s, ok := l.scalar(path, n, "a size", "a size with a unit, such as 512KiB or 1MiB", "!!str", "!!int", "!!float")
		if !ok {
			return
		}
		bytes, p := parseSize(s)
		if p != nil {
			l.unreadable(path, s, *p)
			return
		}
		*to = bytes
	}
}

func (l *loader) duration(to *time.Duration) decode {
	return l.durationOr(to, "")
}

// durationOr reads a duration, or the word that means Never.
func (l *loader) durationOr(to *time.Duration, never string) decode {
	return func(path string, n *yaml.Node) {
		s, ok := l.scalar(path, n, "a duration", "a duration with a unit, such as 30s, 24h or 7d", "!!str", "!!int", "!!float")
		if !ok {
			return
		}
		if s == never && never != "" {
			*to = Never
			return
		}
		d, p := parseDuration(s)
		if p == nil && d < 0 {
			p = &problem{"is negative", "write a time of 0s or more"}
		}
		if p != nil {
			if never != "" {
				p.fix += ", or " + never
			}
			l.unreadable(path, s, *p)
			return
		}
		*to = d
	}
}
