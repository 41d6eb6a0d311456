package config

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	passwordFix = "write {env: NAME} for a variable or {file: PATH} for a file that holds it" //nolint:gosec // no password
	statusFix   = "write codes and ranges of them, such as [200-299, 404]"
)

func (l *loader) headers(path string, n *yaml.Node) map[string]string {
	headers := map[string]string{}
	l.entries(path, n, func(name string, key, value *yaml.Node) {
		at := join(path, name)
		l.places[at] = place{file: l.file, line: key.Line}
		var s string
		if v, ok := l.value(at, value); ok && v.Kind == yaml.ScalarNode && !isNull(v) && v.Tag != "!!str" && v.Tag != "!!timestamp" {
			l.unreadable(at, "", problem{"is " + typeOf(v) + ", not text", "put the value in quotes"}) // which may be a secret
		} else if ok {
			text(l, &s, "plant 7")(at, value)
		}
		headers[name] = s
	})
	return headers
}

// password reads where a secret is that others have made: it is taken as it
// stands there.
func (l *loader) password(path string, n *yaml.Node) Secret {
	n, ok := l.value(path, n)
	if !ok || !l.isMapping(path, n) {
		return Secret{}
	}
	var ref reference
	l.object(path, n, keys{"env": l.hiddenText(&ref.env, passwordFix), "file": l.hiddenText(&ref.file, passwordFix)})
	f, ok := l.lookUp(path, ref, wanted{"the secret", "names no secret", passwordFix, "the other side has given it to you"})
	if ok && f.text == "" {
		l.wrongContent(f, problem{"it is empty", "put the secret there"})
		ok = false
	}
	if ok && strings.ContainsAny(f.text, "\r\n\x00") {
		l.wrongContent(f, problem{"it has several lines", "put the secret there, and nothing else"})
		ok = false
	}
	if !ok {
		l.bad[path] = true
		return Secret{}
	}
	s := NewSecret([]byte(f.text))
	s.env, s.at = f.env, f.file
	return s
}

func (l *loader) texts(path string, n *yaml.Node, example string) []string {
	items := l.list(path, n, "write a list, such as ["+example+"]")
	list := make([]string, len(items))
	for i, item := range items {
		text(l, &list[i], example)(element(path, i), item)
	}
	return list
}

// list returns the elements of a sequence.
func (l *loader) list(path string, n *yaml.Node, fix string) []*yaml.Node {
	n, ok := l.value(path, n)
	if !ok {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		l.wrongType(path, n, "a list", fix)
		return nil
	}
	for i, item := range n.Content {
		l.places[element(path, i)] = place{file: l.file, line: item.Line}
	}
	return n.Content
}

func (l *loader) statuses(path string, n *yaml.Node) []Statuses {
	items := l.list(path, n, statusFix)
	list := make([]Statuses, 0, len(items))
	for i, item := range items {
		at := element(path, i)
		s, ok := l.scalar(at, item, "a status code or a range of them", "200-299", "!!str", "!!int")
		if !ok {
			continue
		}
		first, last, ranged := strings.Cut(s, "-")
		if !ranged {
			last = first
		}
		a, errA := strconv.Atoi(strings.TrimSpace(first))
		b, errB := strconv.Atoi(strings.TrimSpace(last))
		if errA != nil || errB != nil {
			l.unreadable(at, s, problem{"is no status code, and no range of them", statusFix})
			continue
		}
		list = append(list, Statuses{a, b})
	}
	return list
}

func (l *loader) waits(path string, n *yaml.Node) []time.Duration {
	items := l.list(path, n, "write a list, such as [1s, 5s, 30s]")
	waits := make([]time.Duration, len(items))
	for i, item := range items {
		l.duration(&waits[i])(element(path, i), item)
	}
	return waits
}
