package setting

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	passwordFix = "write {env: NAME} for a variable or {file: PATH} for a file that holds it" //nolint:gosec // no password
)

// Headers reads headers. No fault shows a value: each may be a secret.
func Headers(l *Loader, path string, n *yaml.Node) map[string]string {
	headers := map[string]string{}
	l.entries(path, n, func(name string, key, value *yaml.Node) {
		at := Join(path, name)
		l.Places[at] = Place{File: l.File, Line: key.Line}
		var s string
		if v, ok := l.Value(at, value); ok && v.Kind == yaml.ScalarNode && !IsNull(v) && v.Tag != "!!str" && v.Tag != "!!timestamp" {
			l.Unreadable(at, "", Problem{"is " + typeOf(v) + ", not text", "put the value in quotes"}) // the value may be a secret
		} else if ok {
			Text(l, &s, "plant 7")(at, value)
		}
		headers[name] = s
	})
	return headers
}

// password reads where a secret comes from that somebody else has made. It takes the secret as it stands there.
func (l *Loader) password(path string, n *yaml.Node) Secret {
	n, ok := l.Value(path, n)
	if !ok || !IsMapping(l, path, n) {
		return Secret{}
	}
	var ref Reference
	l.Object(path, n, Keys{"env": HiddenText(l, &ref.Env, passwordFix), "file": HiddenText(l, &ref.File, passwordFix)})
	f, ok := l.LookUp(path, ref, Wanted{"the secret", "names no secret", passwordFix, "the other side has given it to you"})
	if ok && f.Text == "" {
		l.WrongContent(f, Problem{"it is empty", "put the secret there"})
		ok = false
	}
	if ok && strings.ContainsAny(f.Text, "\r\n\x00") {
		l.WrongContent(f, Problem{"it has several lines", "put the secret there, and nothing else"})
		ok = false
	}
	if !ok {
		l.Bad[path] = true
		return Secret{}
	}
	s := NewSecret([]byte(f.Text))
	s.env, s.at = f.Env, f.File
	return s
}

func (l *Loader) texts(path string, n *yaml.Node, example string) []string {
	items := l.List(path, n, "write a list, such as ["+example+"]")
	list := make([]string, len(items))
	for i, item := range items {
		Text(l, &list[i], example)(Element(path, i), item)
	}
	return list
}

// List returns the elements of a sequence.
func (l *Loader) List(path string, n *yaml.Node, fix string) []*yaml.Node {
	n, ok := l.Value(path, n)
	if !ok {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		l.wrongType(path, n, "a list", fix)
		return nil
	}
	for i, item := range n.Content {
		l.Places[Element(path, i)] = Place{File: l.File, Line: item.Line}
	}
	return n.Content
}
